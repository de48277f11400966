//! `models.toml` while the daemon runs: what changes is taken over, what is broken changes nothing and is told, and who rests is known.

use std::time::{Duration, Instant};

use palyra_client::api::{ExplainModelsParams, ExplainModelsResponse, ExportJournalParams, ModelsStatusResponse};
use palyra_client::command::{Command, NoParams};
use palyra_common::{HealthStatus, RunLifecyclePhase};
use palyra_models::testing::{ModelServer, Reply};
use palyra_models::{Turn, Usage};
use serde_json::{Value, json};

use crate::raw::unix;
use crate::support::{Daemon, Place};

/// A file with one provider of this name behind the server.
fn file(name: &str, server: &ModelServer) -> String {
    format!(
        "version = 1\n[providers.{name}]\nkind = 'openai_compatible'\nbase_url = '{}'\n[routes]\ndefault = ['{name}/m']\n",
        server.base_url()
    )
}

/// A place whose configuration lies beside a `models.toml`.
fn place(text: &str) -> Place {
    let place = Place::new();
    write(&place, text);
    let config = place.path().join("palyra.toml").display().to_string();
    std::fs::write(&config, "version = 1\n").unwrap();
    place.with("PALYRA_CONFIG", &config)
}

fn write(place: &Place, text: &str) {
    std::fs::write(place.path().join("models.toml"), text).unwrap();
}

async fn status(daemon: &Daemon) -> ModelsStatusResponse {
    daemon.client.execute(&Command::ModelsStatus(NoParams {})).await.unwrap()
}

/// Waits until the status is as wanted.
async fn until(daemon: &Daemon, wanted: impl Fn(&ModelsStatusResponse) -> bool) -> ModelsStatusResponse {
    let began = Instant::now();
    loop {
        let status = status(daemon).await;
        if wanted(&status) {
            return status;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "it stays {status:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn answer(daemon: &Daemon) -> String {
    let run = daemon.create("say something").await;
    daemon.follow(run.run_id, 1).await;
    let run = daemon.client.run(run.run_id).await.unwrap();
    assert_eq!(run.run.phase, RunLifecyclePhase::Completed, "{run:?}");
    run.answer.unwrap()
}

/// Payloads of all records of a kind.
async fn records(daemon: &Daemon, kind: &str) -> Vec<Value> {
    let mut exported = daemon.client.journal_export(&ExportJournalParams::default()).await.unwrap();
    let mut payloads = Vec::new();
    while let Some(record) = exported.next().await.unwrap() {
        if record.kind == kind {
            payloads.push(record.payload);
        }
    }
    payloads
}

#[tokio::test]
async fn a_changed_file_counts_for_the_next_call_and_a_broken_one_changes_nothing() {
    let first = ModelServer::start(vec![Reply::text(&["from the first"])]).unwrap();
    let second =
        ModelServer::start(vec![Reply::text(&["from the second"]), Reply::text(&["still the second"])]).unwrap();
    let place = place(&file("first", &first));
    let daemon = place.start().await;
    assert_eq!(answer(&daemon).await, "from the first");

    // No wait: the very next command acts on what was written.
    write(&place, &file("second", &second));
    let now = status(&daemon).await;
    assert_eq!(now.provider.model, "second/m");
    assert!(now.provider.reason.contains(&second.base_url().replace("/v1", "")), "{now:?}");
    assert_eq!(answer(&daemon).await, "from the second");

    write(&place, "version = 1\n[provider.x]\n");
    let broken = until(&daemon, |status| status.problem.is_some()).await;
    assert_eq!(broken.problem.as_ref().unwrap().code, "models_file_invalid");
    assert_eq!(broken.provider.model, "second/m", "the old one stays in force");
    let health = daemon.client.health().await.unwrap();
    let provider = health.components.iter().find(|component| component.component == "provider").unwrap();
    assert_eq!(provider.status, HealthStatus::Degraded);
    assert!(provider.summary.contains("did you mean `providers`?"), "{}", provider.summary);
    assert_eq!(answer(&daemon).await, "still the second");

    std::fs::remove_file(place.path().join("models.toml")).unwrap();
    let gone =
        until(&daemon, |status| status.problem.as_ref().is_some_and(|it| it.code == "models_file_unusable")).await;
    assert_eq!(gone.provider.model, "second/m", "a file that is gone sends nobody elsewhere");

    write(&place, &file("second", &second));
    until(&daemon, |status| status.problem.is_none()).await;
    // The record follows what it tells of.
    let began = Instant::now();
    let told = loop {
        let told = records(&daemon, "models.changed").await;
        if told.len() >= 4 {
            break told;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{told:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let outcomes: Vec<_> = told.iter().map(|payload| payload["taken_over"].clone()).collect();
    assert_eq!(outcomes, [json!(true), json!(false), json!(false), json!(true)], "{told:?}");
    assert_eq!(told[0]["difference"]["added"], json!(["second"]));
    assert_eq!(told[0]["difference"]["removed"], json!(["first"]));
    assert_eq!(told[1]["error"]["code"], "models_file_invalid");
}

#[tokio::test]
async fn prices_are_followed_like_models() {
    let used = |text: &str| {
        let usage = Some(Usage::plain(100, 10));
        Reply::turn(&Turn { text: vec![text.to_owned()], usage, ..Turn::default() }, 0, &[])
    };
    let server = ModelServer::start(vec![used("cheap"), used("dear")]).unwrap();
    let place = place(&file("lab", &server));
    let daemon = place.start().await;
    answer(&daemon).await;
    let price =
        "version = 1\n[[price]]\nprovider = 'lab'\nmodels = ['m']\ninput = 1_000_000_000\noutput = 1_000_000_000\n";
    std::fs::write(place.path().join("prices.toml"), price).unwrap();
    let began = Instant::now();
    while records(&daemon, "prices.changed").await.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing was taken over");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(unix(&daemon, "GET /api/v1/usage", b"").json()["total"]["micro_usd"], 0, "a server here costs nothing");
    answer(&daemon).await;
    let usage = unix(&daemon, "GET /api/v1/usage", b"").json();
    assert!(usage["total"]["micro_usd"].as_u64().unwrap() > 0, "{usage}");
    std::fs::write(place.path().join("prices.toml"), "version = 2\n").unwrap();
    let now = until(&daemon, |status| status.prices_problem.is_some()).await;
    assert_eq!(now.prices_problem.unwrap().code, "price_file_invalid");
}

#[tokio::test]
async fn who_rests_is_known_and_a_mended_account_is_asked_at_once() {
    let refusing = ModelServer::start(vec![Reply::status(401, &json!({"error": {"message": "no such key"}}))]).unwrap();
    let working = ModelServer::start(vec![Reply::text(&["here"]), Reply::text(&["again"])]).unwrap();
    let both = format!(
        "version = 1\n[providers.work]\nkind = 'openai_compatible'\nbase_url = '{}'\n\
         [providers.home]\nkind = 'openai_compatible'\nbase_url = '{}'\n[routes]\ndefault = ['work/m', 'home/m']\n",
        refusing.base_url(),
        working.base_url()
    );
    let place = place(&both);
    let daemon = place.start().await;
    assert_eq!(answer(&daemon).await, "here");
    let rests = status(&daemon).await;
    let trouble = rests.troubles.first().unwrap();
    assert_eq!((trouble.provider.as_str(), trouble.state.as_str()), ("work", "open"), "{rests:?}");
    assert!(trouble.until.is_some() && trouble.last.as_ref().unwrap().contains("no such key"), "{rests:?}");
    let ask = Command::ModelsExplain(ExplainModelsParams::default());
    let explained: ExplainModelsResponse = daemon.client.execute(&ask).await.unwrap();
    let choice = explained.choice.unwrap();
    let standings: Vec<_> =
        choice.steps.iter().map(|step| (step.target.name.as_str(), step.standing.as_str())).collect();
    assert_eq!(standings, [("work/m", "rests"), ("home/m", "ready")]);
    assert!(choice.steps[0].remark.contains("is cooling down for"), "{choice:?}");

    // What rested is asked again once its account is another one; what nobody touched keeps its state.
    write(&place, &both.replace("[providers.home]", "context_tokens = 4096\n[providers.home]"));
    until(&daemon, |status| status.troubles.is_empty()).await;

    let wrong = ExplainModelsParams { needs: vec!["magic".to_owned()], ..ExplainModelsParams::default() };
    let refused = daemon.client.execute::<Value>(&Command::ModelsExplain(wrong)).await;
    assert_eq!(crate::support::code(refused), "request_invalid");
}
