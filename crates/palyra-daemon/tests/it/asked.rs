//! Questions that a client puts to its person through Palyra.

use std::time::Duration;

use palyra_client::api::{ApprovalView, DecideApprovalResponse, ListApprovalsResponse};
use serde_json::{Value, json};

use crate::raw::{Answer, loopback_json, unix};
use crate::support::{Daemon, Place};

/// A token for a program of the owner's own.
fn program(daemon: &Daemon, name: &str, scopes: &[&str]) -> String {
    let params = json!({"name": name, "role": "operator", "scopes": scopes}).to_string();
    let made = unix(daemon, "POST /api/v1/tokens", params.as_bytes()).json();
    made["secret"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

fn post(daemon: &Daemon, token: &str, path: &str, body: &Value) -> Answer {
    loopback_json(daemon, &format!("POST {path}"), Some(token), &body.to_string())
}

fn read<T: serde::de::DeserializeOwned>(answer: &Answer) -> T {
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_value(answer.json()).unwrap()
}

const ALLOW: &str = r#"{"decision":"allow","scope":"once"}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_editor_asks_and_a_person_answers() {
    let place = Place::new();
    let daemon = place.start().await;
    let editor = program(&daemon, "editor", &["approvals:request", "approvals:read", "approvals:decide"]);
    let question = json!({"subject": "tool", "summary": "run `make deploy`", "risk": "high", "reason": "you said so",
        "details": {"command": "make deploy"}});
    let asked: ApprovalView = read(&post(&daemon, &editor, "/api/v1/approvals", &question));
    assert_eq!((asked.run_id, asked.answer.is_none()), (None, true));
    assert!(asked.asked_by.as_ref().unwrap().contains("token"), "its words are told apart: {asked:?}");

    // The program that asks does not answer.
    let decide = format!("/api/v1/approvals/{}/decide", asked.approval_id);
    let own = post(&daemon, &editor, &decide, &serde_json::from_str(ALLOW).unwrap());
    assert_eq!(own.refusal(), (403, "approval_not_permitted".to_owned()));

    // It waits, over a restart too, and hears the answer as soon as there is one.
    daemon.kill();
    let daemon = place.start().await;
    let listed: ListApprovalsResponse = read(&unix(&daemon, "GET /api/v1/approvals", b""));
    assert_eq!(listed.approvals[0].summary, "run `make deploy`");
    let (address, waiting_for) = (daemon.address(), asked.approval_id);
    let waiting = tokio::task::spawn_blocking(move || {
        let stream = std::net::TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let bearer = format!("Bearer {editor}");
        let headers = [("Host", address.as_str()), ("Authorization", bearer.as_str())];
        crate::raw::exchange(stream, &format!("GET /api/v1/approvals/{waiting_for}?wait_seconds=50"), &headers, b"")
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "nobody has answered");
    let broad = unix(&daemon, &format!("POST {decide}"), br#"{"decision":"allow","scope":"session"}"#);
    assert_eq!(broad.refusal(), (422, "approval_scope_unavailable".to_owned()));
    let decided: DecideApprovalResponse = read(&unix(&daemon, &format!("POST {decide}"), ALLOW.as_bytes()));
    assert!(decided.run.is_none());
    let heard: ApprovalView = read(&waiting.await.unwrap());
    assert_eq!(heard.answer.unwrap().decision.as_str(), "allow");
    let twice = unix(&daemon, &format!("POST {decide}"), ALLOW.as_bytes());
    assert_eq!(twice.refusal(), (409, "approval_closed".to_owned()));
    let open: ListApprovalsResponse = read(&unix(&daemon, "GET /api/v1/approvals", b""));
    assert!(open.approvals.is_empty());
    let kinds = unix(&daemon, "GET /api/v1/journal/tail?n=200", b"").body;
    assert!(kinds.contains("client_approval.requested") && kinds.contains("client_approval.decided"), "{kinds}");
}

#[tokio::test]
async fn questions_are_bounded_lapse_and_stay_with_their_person() {
    let place = Place::new();
    let daemon = place.start().await;
    let editor = program(&daemon, "editor", &["approvals:request", "approvals:read"]);
    let ask = |question: Value| post(&daemon, &editor, "/api/v1/approvals", &question);
    for (field, value) in [
        ("summary", json!("")),
        ("summary", json!("two\nlines")),
        ("summary", json!("x".repeat(241))),
        ("reason", json!("x".repeat(2_001))),
        ("details", json!("x".repeat(17_000))),
        ("expires_in_seconds", json!(0)),
    ] {
        let mut question = json!({"subject": "tool", "summary": "may I?"});
        question[field] = value;
        let refused = ask(question).json();
        assert_eq!(refused["error"]["validation_errors"][0]["field"], field, "{refused}");
    }
    let brief: ApprovalView = read(&ask(json!({"subject": "tool", "summary": "quick?", "expires_in_seconds": 1})));
    let path = format!("GET /api/v1/approvals/{}?wait_seconds=30", brief.approval_id);
    let lapsed: ApprovalView = read(&loopback_json(&daemon, &path, Some(&editor), ""));
    assert_eq!(lapsed.answer.unwrap().decision.as_str(), "timeout");
    let late = unix(&daemon, &format!("POST /api/v1/approvals/{}/decide", brief.approval_id), ALLOW.as_bytes());
    assert_eq!(late.refusal(), (409, "approval_closed".to_owned()));

    for number in 0..32 {
        assert_eq!(ask(json!({"subject": "tool", "summary": format!("question {number}")})).status, 200);
    }
    let more = ask(json!({"subject": "tool", "summary": "one more"}));
    assert_eq!(more.refusal(), (409, "approval_requests_full".to_owned()));

    // Somebody else sees nothing of it and cannot answer.
    let params = json!({"name": "m", "role": "operator", "subject": "mallory"}).to_string();
    let mallory = unix(&daemon, "POST /api/v1/tokens", params.as_bytes()).json()["secret"].as_str().unwrap().to_owned();
    let seen: ListApprovalsResponse = read(&loopback_json(&daemon, "GET /api/v1/approvals", Some(&mallory), ""));
    assert!(seen.approvals.is_empty());
    let listed: ListApprovalsResponse = read(&unix(&daemon, "GET /api/v1/approvals", b""));
    let path = format!("POST /api/v1/approvals/{}/decide", listed.approvals[0].approval_id);
    assert_eq!(loopback_json(&daemon, &path, Some(&mallory), ALLOW).refusal(), (403, "command_denied".to_owned()));
}
