//! Budgets against a server whose reports cannot be believed.

use std::time::{Duration, Instant};

use palyra_client::api::{RunDetail, UsageParams};
use palyra_common::{HealthStatus, RunLifecyclePhase, TerminationReason};
use palyra_models::testing::{ModelServer, Reply};
use palyra_models::{Turn, Usage};

use crate::support::{Daemon, Place};

const PRICES: &str =
    "version = 1\n[[price]]\nprovider = 'lab'\nmodels = ['m']\ninput = 1_000_000\noutput = 1_000_000\n";

fn reporting(usage: Usage) -> Reply {
    Reply::turn(&Turn { text: vec!["word ".repeat(100)], usage: Some(usage), ..Turn::default() }, 0, &[])
}

fn place(server: &ModelServer, config: &str) -> Place {
    let place = Place::new();
    let models = format!(
        "version = 1\n[providers.lab]\nkind = 'openai_compatible'\nbase_url = '{}'\n[routes]\ndefault = ['lab/m']\n",
        server.base_url()
    );
    place_file(&place, "models.toml", &models);
    place_file(&place, "prices.toml", PRICES);
    place_file(&place, "palyra.toml", &format!("version = 1\n{config}"));
    let config = place.path().join("palyra.toml").display().to_string();
    place.with("PALYRA_CONFIG", &config)
}

fn place_file(place: &Place, name: &str, text: &str) {
    std::fs::write(place.path().join(name), text).unwrap();
}

async fn run(daemon: &Daemon) -> RunDetail {
    let run = daemon.create("say something").await;
    let began = Instant::now();
    loop {
        let detail = daemon.client.run(run.run_id).await.unwrap();
        if detail.run.phase.is_terminal() {
            return detail;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{detail:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_absurd_report_disables_nothing() {
    let absurd = Usage::plain(1_000_000_000_000_000_000, 1_000_000_000_000_000_000);
    let server = ModelServer::start(vec![reporting(absurd); 20]).unwrap();
    let place = place(&server, "[budget]\nday = '$100'\n");
    let daemon = place.start().await;
    for _ in 0..12 {
        assert_eq!(run(&daemon).await.run.phase, RunLifecyclePhase::Completed);
    }
    daemon.kill();
    let daemon = place.start().await;
    assert_eq!(run(&daemon).await.run.phase, RunLifecyclePhase::Completed);
    assert_eq!(daemon.client.health().await.unwrap().status, HealthStatus::Ok);
    let report = daemon.client.usage(&UsageParams::default()).await.unwrap().report;
    assert_eq!((report.groups.len(), report.total.calls), (1, 13));
    assert!(report.total.micro_usd.0 < 1_000_000, "thirteen calls at their worst case: {}", report.total.micro_usd);
}

#[tokio::test]
async fn a_budget_cannot_be_talked_away() {
    for usage in [Usage::plain(0, 0), Usage::plain(1, 1)] {
        let server = ModelServer::start(vec![reporting(usage); 40]).unwrap();
        let place = place(&server, "[budget]\nday = '$0.06'\n");
        let daemon = place.start().await;
        let mut completed = 0;
        let last = loop {
            let detail = run(&daemon).await;
            match detail.run.phase {
                RunLifecyclePhase::Completed => completed += 1,
                _ => break detail,
            }
            assert!(completed < 32, "the budget was talked away");
        };
        assert_eq!(last.run.reason, Some(TerminationReason::BudgetExceeded), "{last:?}");
        assert!(completed > 0, "{last:?}");
        let usage = daemon.client.usage(&UsageParams::default()).await.unwrap();
        assert_eq!(Some(usage.report.total.micro_usd), usage.budgets[0].spent, "reports agree");
        assert_eq!(usage.report.total.calls, completed);
    }
}
