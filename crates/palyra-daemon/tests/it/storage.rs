//! How much a principal may store.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::raw::{Answer, loopback_json, unix};
use crate::support::{Daemon, Place};
use crate::things::token;

const QUOTA: usize = 65_536;

fn upload(daemon: &Daemon, token: &str, name: &str, bytes: usize) -> Answer {
    let body = json!({"name": name, "data": STANDARD.encode(name.repeat(bytes / name.len()))}).to_string();
    loopback_json(daemon, "POST /acp/v1/command", Some(token), &envelope("attachment.add", &body))
}

fn envelope(command: &str, params: &str) -> String {
    let params: Value = serde_json::from_str(params).unwrap();
    json!({"request_id": palyra_common::RequestId::generate(), "command": command, "params": params}).to_string()
}

fn code(answer: &Answer) -> Value {
    answer.json()["error"]["code"].clone()
}

#[tokio::test]
async fn a_principal_stores_no_more_than_its_quota_and_others_are_not_affected() {
    let place = Place::new().with("PALYRA_STORAGE_PER_PRINCIPAL_BYTES", &QUOTA.to_string());
    let daemon = place.start().await;
    let of = |subject: &str| token(&daemon, &json!({"name": subject, "role": "operator", "subject": subject})).0;
    let (ci, other) = (of("ci"), of("other"));
    assert_eq!(code(&upload(&daemon, &ci, "aaaa", QUOTA)), "storage_quota_exceeded", "more than there is room for");
    assert_eq!(code(&upload(&daemon, &ci, "bbbb", QUOTA / 2)), Value::Null);
    assert_eq!(code(&upload(&daemon, &ci, "bbbb", QUOTA / 2)), "storage_quota_exceeded", "room for both is asked for");
    let task = json!({"prompt": "list the files", "workspace": place.workspace()});
    let started = loopback_json(&daemon, "POST /api/v1/runs", Some(&ci), &task.to_string());
    assert_eq!(started.status, 200, "{started:?}");
    let run = started.json()["run_id"].as_str().unwrap().parse().unwrap();
    daemon.follow(run, 1).await;
    let event = json!({"kind": "client.test", "payload": {"text": "x".repeat(8_000)}}).to_string();
    let append = |token: &str| loopback_json(&daemon, "POST /api/v1/events", Some(token), &event);
    let mut appended = 0;
    while append(&ci).status == 200 {
        appended += 1;
        assert!(appended * 8_000 < QUOTA, "nothing stops it");
    }
    assert!(appended > 0);
    // Everything that stores is refused, by every way in; reading and stopping go on.
    assert_eq!(append(&ci).code(), "storage_quota_exceeded");
    assert_eq!(
        loopback_json(&daemon, "POST /api/v1/runs", Some(&ci), &task.to_string()).code(),
        "storage_quota_exceeded"
    );
    let chat = json!({"model": "palyra", "messages": [{"role": "user", "content": "hello"}]}).to_string();
    let chat = loopback_json(&daemon, "POST /v1/chat/completions", Some(&ci), &chat);
    assert_eq!(chat.json()["error"]["code"], "storage_quota_exceeded", "{chat:?}");
    assert_eq!(loopback_json(&daemon, "GET /api/v1/runs", Some(&ci), "").status, 200);
    let abort = format!("POST /api/v1/runs/{run}/abort");
    assert_ne!(loopback_json(&daemon, &abort, Some(&ci), "{}").code(), "storage_quota_exceeded");
    assert_eq!(append(&other).status, 200, "others have their own");
    for _ in 0..QUOTA / 8_000 + 1 {
        assert_eq!(unix(&daemon, "POST /api/v1/events", event.as_bytes()).status, 200, "the owner has no quota");
    }
    daemon.kill();
    let daemon = place.start().await;
    assert_eq!(loopback_json(&daemon, "POST /api/v1/events", Some(&ci), &event).code(), "storage_quota_exceeded");
}
