//! Requests that are wrong: each is refused with a status, a stable code and the field.

use crate::raw::unix;
use crate::support::{Daemon, Place};

fn post(daemon: &Daemon, path: &str, body: &str) -> (u16, String) {
    unix(daemon, &format!("POST {path}"), body.as_bytes()).refusal()
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let place = Place::new();
    let daemon = place.start().await;
    let refused = |status: u16, code: &str| (status, code.to_owned());

    assert_eq!(unix(&daemon, "GET /api/v1/nothing", b"").refusal(), refused(404, "route_not_found"));
    assert_eq!(unix(&daemon, "DELETE /api/v1/runs", b"").refusal(), refused(405, "method_not_allowed"));
    assert_eq!(unix(&daemon, "DELETE /healthz", b"").refusal(), refused(405, "method_not_allowed"));
    assert_eq!(post(&daemon, "/api/v1/runs", "{"), refused(400, "body_malformed"));
    assert_eq!(post(&daemon, "/api/v1/runs", ""), refused(422, "request_invalid"));
    let unknown = r#"{"prompt":"p","workspace":"/","max_turns":1}"#;
    let answer = unix(&daemon, "POST /api/v1/runs", unknown.as_bytes());
    assert_eq!(answer.refusal(), refused(422, "request_invalid"));
    assert_eq!(answer.json()["error"]["validation_errors"][0]["field"], "max_turns");
    for (field, body) in [
        ("workspace", r#"{"prompt":"p","workspace":"relative"}"#),
        (
            "session_key",
            r#"{"prompt":"p","workspace":"/","session_key":"a","session_id":"01JC0Q6F7Z8G9H0J1K2M3N4P5Q"}"#,
        ),
        ("session_key", r#"{"prompt":"p","workspace":"/","session_key":" "}"#),
        ("idempotency_key", r#"{"prompt":"p","workspace":"/","idempotency_key":"a\nb"}"#),
        ("limits.max_turns", r#"{"prompt":"p","workspace":"/","limits":{"max_turns":0}}"#),
    ] {
        let answer = unix(&daemon, "POST /api/v1/runs", body.as_bytes());
        assert_eq!(answer.status, 422, "{answer:?}");
        assert_eq!(answer.json()["error"]["validation_errors"][0]["field"], field, "{answer:?}");
    }
    assert_eq!(unix(&daemon, "GET /api/v1/runs/short", b"").refusal(), refused(422, "request_invalid"));
    assert_eq!(unix(&daemon, "GET /api/v1/runs?limit=x", b"").refusal(), refused(422, "request_invalid"));
    assert_eq!(unix(&daemon, "GET /api/v1/runs?limit=0", b"").refusal(), refused(422, "request_invalid"));
    assert_eq!(unix(&daemon, "GET /api/v1/journal/prove/x", b"").refusal(), refused(422, "request_invalid"));
    assert_eq!(unix(&daemon, "GET /api/v1/journal/tail?n=1&from_seq=1", b"").refusal().0, 422);
    assert_eq!(post(&daemon, "/api/v1/journal/backup", r#"{"dest":"here"}"#), refused(422, "request_invalid"));
    assert_eq!(post(&daemon, "/api/v1/daemon/stop", r#"{"now":true}"#), refused(422, "request_invalid"));

    // Bytes that are no text are no id either.
    for path in [
        "GET /api/v1/runs/%ff%fe",
        "GET /api/v1/runs/%ff/tape",
        "POST /api/v1/runs/%ff/abort",
        "GET /api/v1/runs/%ff/events",
    ] {
        let answer = unix(&daemon, path, b"");
        assert_eq!(answer.refusal(), refused(422, "request_invalid"), "{path}");
        assert_eq!(answer.json()["error"]["validation_errors"][0]["field"], "run_id", "{path}");
    }

    let absent = "01JC0Q6F7Z8G9H0J1K2M3N4P5Q";
    for path in [
        format!("GET /api/v1/runs/{absent}"),
        format!("GET /api/v1/runs/{absent}/tape"),
        format!("GET /api/v1/runs/{absent}/tape?follow=true"),
        format!("POST /api/v1/runs/{absent}/abort"),
        format!("POST /api/v1/runs/{absent}/undo"),
        format!("POST /api/v1/runs/{absent}/replay"),
    ] {
        assert_eq!(unix(&daemon, &path, b"").refusal(), refused(404, "run_not_found"), "{path}");
    }
    assert_eq!(unix(&daemon, &format!("GET /api/v1/sessions/{absent}"), b"").refusal().1, "session_not_found");
    let decide = format!("/api/v1/approvals/{absent}/decide");
    assert_eq!(post(&daemon, &decide, r#"{"decision":"allow","scope":"once"}"#), refused(404, "approval_not_found"));
    assert_eq!(unix(&daemon, "GET /api/v1/journal/prove/9999", b"").refusal(), refused(404, "record_not_found"));
    // Nothing of all this left a trace.
    assert!(daemon.client.runs(&Default::default()).await.unwrap().runs.is_empty());
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let place = Place::new();
    let daemon = place.start().await;
    let prompt = "x".repeat(8 * 1024 * 1024);
    let body = format!(r#"{{"prompt":"{prompt}","workspace":"/"}}"#);
    assert_eq!(post(&daemon, "/api/v1/runs", &body), (413, "body_too_large".to_owned()));
    assert_eq!(daemon.client.health().await.unwrap().pid, daemon.pid());
}

#[tokio::test]
async fn the_configuration_is_shown_with_its_sources() {
    let place = Place::new().with("PALYRA_RUN_MAX_TURNS", "7").with("OPENAI_API_KEY", "sk-secret");
    let place = place.with("PALYRA_MODEL_PROVIDER", "offline");
    let daemon = place.start().await;
    let config = daemon.client.config().await.unwrap();
    let entry = |key: &str| config.entries.iter().find(|entry| entry.key == key).unwrap();
    assert_eq!(entry("run.max_turns").value, 7);
    assert_eq!(entry("run.max_turns").source, "env PALYRA_RUN_MAX_TURNS");
    assert_eq!(entry("run.max_tool_calls").source, "default");
    assert!(!format!("{config:?}").contains("sk-secret"));
    assert!(config.entries.is_sorted_by_key(|entry| entry.key.clone()));
}
