//! What a credential can make of itself: nothing that is good for more, lasts longer, or answers its own questions.

use std::time::Duration;

use palyra_common::Digest;
use serde_json::{Value, json};

use crate::quic_support::{asks, question};
use crate::raw::{Answer, exchange_with, loopback_json, unix};
use crate::standing::closed_with;
use crate::support::{Daemon, Place};
use crate::things::token;

const ALLOW: &str = r#"{"decision":"allow","scope":"once"}"#;

/// A session of the console: its cookie and its proof.
fn log_in(daemon: &Daemon, token: &str) -> (String, String) {
    let entered = exchange_with(daemon, "POST /console/v1/login", &[], &json!({ "token": token }).to_string());
    assert_eq!(entered.status, 200, "{entered:?}");
    let cookie = entered.raw_header("set-cookie").split(';').next().unwrap().trim().to_owned();
    (cookie, entered.json()["csrf"].as_str().unwrap().to_owned())
}

fn post(daemon: &Daemon, token: &str, path: &str, body: &Value) -> Answer {
    loopback_json(daemon, &format!("POST {path}"), Some(token), &body.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_secret_ends_what_the_one_before_began() {
    let place = Place::new();
    let daemon = place.start().await;
    let (leaked, id) = token(&daemon, &json!({"name": "leaked", "role": "owner"}));
    let (cookie, _) = log_in(&daemon, &leaked);
    let ask = || exchange_with(&daemon, "GET /console/v1/session", &[("Cookie", &cookie)], "");
    assert_eq!(ask().status, 200);
    // A token that the thief made for later.
    let made = post(&daemon, &leaked, "/api/v1/tokens", &json!({"name": "later", "role": "operator"})).json();
    let later = made["secret"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    assert_eq!(loopback_json(&daemon, "GET /api/v1/runs", Some(&later), "").status, 200);
    std::thread::scope(|scope| {
        let socket = scope.spawn(|| closed_with(&daemon, &leaked));
        std::thread::sleep(Duration::from_millis(300));
        let rotated = unix(&daemon, &format!("POST /api/v1/tokens/{id}/rotate"), b"{}").json();
        assert_eq!(socket.join().unwrap(), 1008);
        let fresh = rotated["secret"].as_str().unwrap_or_else(|| panic!("{rotated}"));
        assert_eq!(loopback_json(&daemon, "GET /api/v1/runs", Some(fresh), "").status, 200);
    });
    assert_eq!(ask().status, 401);
    for gone in [&leaked, &later] {
        assert_eq!(loopback_json(&daemon, "GET /api/v1/runs", Some(gone), "").status, 401);
    }
}

#[tokio::test]
async fn a_brief_token_makes_nothing_that_is_more_than_itself() {
    let place = Place::new();
    let daemon = place.start().await;
    let narrow = json!({"name": "n", "role": "owner", "scopes": ["tokens:manage"], "expires_in_seconds": 300});
    let (brief, _) = token(&daemon, &narrow);
    let (strong, id) = token(&daemon, &json!({"name": "strong", "role": "owner"}));
    for wanted in [
        json!({"name": "x", "role": "owner", "scopes": ["daemon:control"]}),
        json!({"name": "x", "role": "owner", "scopes": ["tokens:manage"], "expires_in_seconds": 3600}),
    ] {
        let refused = post(&daemon, &brief, "/api/v1/tokens", &wanted);
        assert_eq!(refused.refusal(), (403, "credential_exceeded".to_owned()), "{wanted}");
    }
    let refused = post(&daemon, &brief, &format!("/api/v1/tokens/{id}/rotate"), &json!({}));
    assert_eq!(refused.refusal(), (403, "credential_exceeded".to_owned()));
    assert_eq!(loopback_json(&daemon, "GET /api/v1/runs", Some(&strong), "").status, 200, "it was left alone");
    // What is left open is what the maker has.
    let made = post(&daemon, &brief, "/api/v1/tokens", &json!({"name": "x", "role": "owner"})).json();
    assert_eq!(made["token"]["scopes"], json!(["tokens:manage"]), "{made}");
    assert!(made["token"]["expires_at"].is_number() || made["token"]["expires_at"].is_string(), "{made}");
}

#[tokio::test]
async fn a_program_does_not_answer_the_questions_of_its_own_run() {
    let place = asks();
    let daemon = place.start().await;
    let (program, _) = token(&daemon, &json!({"name": "program", "role": "owner"}));
    let task = json!({"prompt": "write it", "workspace": place.workspace()});
    assert_eq!(post(&daemon, &program, "/api/v1/runs", &task).status, 200);
    let id = question(&daemon).await.approval_id;
    let refused = (403, "approval_not_permitted".to_owned());
    let path = format!("/api/v1/approvals/{id}/decide");
    assert_eq!(loopback_json(&daemon, &format!("POST {path}"), Some(&program), ALLOW).refusal(), refused);
    // Nor through the console, nor with a token that it made.
    let (cookie, csrf) = log_in(&daemon, &program);
    let headers = [("Cookie", cookie.as_str()), ("X-Palyra-Csrf", csrf.as_str())];
    let console = format!("POST /console/v1/approvals/{id}/decide");
    assert_eq!(exchange_with(&daemon, &console, &headers, ALLOW).refusal(), refused);
    let child = post(&daemon, &program, "/api/v1/tokens", &json!({"name": "child", "role": "operator"})).json();
    let child = child["secret"].as_str().unwrap().to_owned();
    assert_eq!(loopback_json(&daemon, &format!("POST {path}"), Some(&child), ALLOW).refusal(), refused);
    // A person does, at the machine or with a credential of their own.
    let decided = unix(&daemon, &format!("POST {path}"), ALLOW.as_bytes());
    assert_eq!(decided.status, 200, "{decided:?}");
}

#[tokio::test]
async fn a_program_does_not_answer_the_questions_of_a_run_that_it_steered() {
    let place = asks();
    let daemon = place.start().await;
    let (program, _) = token(&daemon, &json!({"name": "program", "role": "owner"}));
    let run = daemon.create("write it").await;
    let id = question(&daemon).await.approval_id;
    let path = format!("/api/v1/approvals/{id}/decide");
    let steer = json!({"text": "write it elsewhere", "mode": "steer"});
    assert_eq!(post(&daemon, &program, &format!("/api/v1/runs/{}/input", run.run_id), &steer).status, 200);
    let refused = loopback_json(&daemon, &format!("POST {path}"), Some(&program), ALLOW).refusal();
    assert_eq!(refused, (403, "approval_not_permitted".to_owned()));
    // A program that had no part in it may.
    let (other, _) = token(&daemon, &json!({"name": "other", "role": "owner"}));
    let decided = loopback_json(&daemon, &format!("POST {path}"), Some(&other), ALLOW);
    assert_eq!(decided.status, 200, "{decided:?}");
}

#[tokio::test]
async fn a_program_does_not_answer_its_own_question_through_the_console() {
    let place = Place::new();
    let daemon = place.start().await;
    let (program, _) = token(&daemon, &json!({"name": "program", "role": "operator"}));
    let asked = post(&daemon, &program, "/api/v1/approvals", &json!({"subject": "tool", "summary": "may I?"})).json();
    let id = asked["approval_id"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    let (cookie, csrf) = log_in(&daemon, &program);
    let headers = [("Cookie", cookie.as_str()), ("X-Palyra-Csrf", csrf.as_str())];
    let answer = exchange_with(&daemon, &format!("POST /console/v1/approvals/{id}/decide"), &headers, ALLOW);
    assert_eq!(answer.refusal(), (403, "approval_not_permitted".to_owned()));
    // The owner's own session is a person's.
    let (cookie, csrf) = log_in(&daemon, &daemon.token());
    let headers = [("Cookie", cookie.as_str()), ("X-Palyra-Csrf", csrf.as_str())];
    let answer = exchange_with(&daemon, &format!("POST /console/v1/approvals/{id}/decide"), &headers, ALLOW);
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn what_is_served_beside_the_commands_is_decided_like_them() {
    let place = Place::new();
    let policies = place.path().join("policies");
    std::fs::create_dir(&policies).unwrap();
    let rule = "@id(\"closed\")\n@reason_person(\"closed\")\n@reason_model(\"closed\")\n\
        forbid (principal, action in Action::\"command\", resource)\n\
        when { [\"openai.models\", \"openai.embeddings\", \"metrics.read\"].contains(context.command) };\n";
    std::fs::write(policies.join("own.cedar"), rule).unwrap();
    let place = place.with("PALYRA_POLICY_DIRECTORY", &policies.display().to_string());
    let daemon = place.start().await;
    let embedding = json!({"model": "m", "input": "x"}).to_string();
    for (line, body) in [
        ("GET /v1/models", ""),
        ("GET /v1/models/palyra", ""),
        ("POST /v1/embeddings", embedding.as_str()),
        ("GET /metrics", ""),
    ] {
        let answer = loopback_json(&daemon, line, Some(&daemon.token()), body);
        assert_eq!(answer.refusal(), (403, "command_denied".to_owned()), "{line}");
    }
}

#[tokio::test]
async fn to_know_a_digest_is_not_to_have_the_artifact() {
    let content = "the crown jewels\n";
    let script = format!(
        "[[turn]]\n[[turn.call]]\ntool = \"palyra.fs.write\"\narguments = {{ path = \"a.txt\", content = \"x\" }}\n\
         [[turn]]\n[[turn.call]]\ntool = \"palyra.artifact.read\"\narguments = {{ digest = \"{}\" }}\n\
         [[turn]]\necho = \"last_result\"\n",
        Digest::of(content.as_bytes())
    );
    // Results are shown as they are, so that the answer tells what was read.
    let place = Place::new().with_script(&script).with("PALYRA_RUN_MODE", "open");
    place.write("a.txt", content);
    let daemon = place.start().await;
    let run = daemon.create("replace it, then look at what was there").await;
    daemon.follow(run.run_id, 1).await;
    let answer = daemon.client.run(run.run_id).await.unwrap().answer.unwrap();
    assert!(answer.contains("the crown jewels"), "one's own: {answer}");

    let other = place.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let granted = json!({"principal": "mallory", "path": other}).to_string();
    assert_eq!(unix(&daemon, "POST /api/v1/workspaces", granted.as_bytes()).status, 200);
    let (mallory, _) = token(&daemon, &json!({"name": "m", "role": "operator", "subject": "mallory"}));
    let run = post(&daemon, &mallory, "/api/v1/runs", &json!({"prompt": "look", "workspace": other})).json();
    let id = run["run_id"].as_str().unwrap_or_else(|| panic!("{run}")).parse().unwrap();
    daemon.follow(id, 1).await;
    let answer = daemon.client.run(id).await.unwrap().answer.unwrap();
    assert!(!answer.contains("the crown jewels"), "{answer}");
    assert!(answer.contains("artifact"), "it is told as if there were none: {answer}");
}
