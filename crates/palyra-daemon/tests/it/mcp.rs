//! The daemon as a server of the Model Context Protocol, driven by the protocol's own package and by requests that no package sends.

use std::process::Command;

use serde_json::{Value, json};

use crate::clients::{checkout, python};
use crate::raw::{Answer, exchange_with, unix};
use crate::support::{Daemon, Place};

const SCRIPT: &str = r#"
[[script]]
when = "read it"
[[script.turn]]
text = "it says hello"

[[script]]
when = "write it"
[[script.turn]]
[[script.turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.txt", content = "x" }
"#;

fn tour(daemon: &Daemon, workspace: &str, token: &str, mode: &str) -> Value {
    let output = Command::new(python("mcp"))
        .arg(checkout().join("scripts/clients/mcp_client.py"))
        .args([&format!("http://{}/mcp", daemon.address()), workspace, mode])
        .env("PALYRA_TOKEN", token)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A new token.
fn token(daemon: &Daemon, params: &Value) -> String {
    let answer = unix(daemon, "POST /api/v1/tokens", params.to_string().as_bytes()).json();
    answer["secret"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// One message of the protocol, as it was before 2026-07-28, with these headers besides.
fn message(daemon: &Daemon, headers: &[(&str, &str)], method: &str, params: &Value) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut all = vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    all.extend_from_slice(headers);
    exchange_with(daemon, "POST /mcp", &all, &body)
}

/// The one message of an event stream.
fn event(answer: &Answer) -> Value {
    let data = answer.body.lines().find_map(|line| line.strip_prefix("data: ").filter(|data| data.starts_with('{')));
    serde_json::from_str(data.unwrap_or_else(|| panic!("no message: {answer:?}"))).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_package_runs_a_task_and_cannot_answer_for_a_person() {
    let place = Place::new().with_script(SCRIPT).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let daemon = place.start().await;
    let workspace = place.workspace().display().to_string();
    for mode in ["legacy", "auto"] {
        // A token per mode: an idempotency key belongs to whoever used it.
        let user = json!({"name": mode, "role": "operator", "subject": format!("agent-{mode}")});
        let seen = tour(&daemon, &workspace, &token(&daemon, &user), mode);
        let names: Vec<_> = seen["tools"].as_object().unwrap().keys().cloned().collect();
        let offered =
            ["approval_list", "run_abort", "run_create", "run_get", "run_list", "session_list", "session_new"];
        assert!(offered.iter().all(|name| names.contains(&(*name).to_owned())), "{mode}: {names:?}");
        assert!(!names.iter().any(|name| name.contains("decide") || name.contains("token")), "{names:?}");
        assert_eq!(seen["tools"]["run_list"], json!({"read_only": true, "required": []}), "{mode}");
        assert_eq!(seen["tools"]["run_create"]["required"], json!(["prompt"]));

        let run = &seen["run"]["structured"];
        assert_eq!((&run["phase"], &run["answer"]), (&json!("completed"), &json!("it says hello")), "{mode}: {seen:#}");
        assert_eq!(run["session_id"], seen["session"]["structured"]["session_id"]);
        assert_eq!(seen["asking"]["structured"]["phase"], "waiting_for_approval", "{mode}");
        let asked = seen["approvals"]["structured"]["approvals"].as_array().unwrap();
        assert_eq!((asked.len(), &asked[0]["tool"]), (1, &json!("palyra.fs.write")));
        assert_eq!(seen["aborted"]["is_error"], false);
        assert_eq!(seen["again"]["structured"]["phase"], "aborted", "{mode}");
        assert_eq!(seen["sessions"]["structured"]["sessions"].as_array().unwrap().len(), 2, "{mode}");
        assert_eq!(seen["wrong_field"]["is_error"], true);
        assert_eq!(seen["wrong_field"]["structured"]["code"], "request_invalid", "{mode}");
        assert_eq!(seen["not_taken"]["structured"]["validation_errors"][0]["field"], "client_tools");
        assert_eq!(seen["key"][0], seen["key"][1], "{mode}: one key is one run");
        assert!(seen["no_such_tool"].as_str().unwrap().contains("approval_decide"), "{mode}");
    }
    assert!(!place.workspace().join("a.txt").exists(), "nobody agreed to the write");
}

#[tokio::test]
async fn the_gate_and_the_policies_hold() {
    let place = Place::new().with_script(SCRIPT);
    let daemon = place.start().await;
    let call = json!({"name": "run_create", "arguments": {"prompt": "read it", "workspace": place.workspace()}});
    let owner = format!("Bearer {}", daemon.token());

    let nobody = message(&daemon, &[], "tools/list", &json!({}));
    assert_eq!(nobody.refusal(), (401, "token_refused".to_owned()));
    let page = message(&daemon, &[("Authorization", &owner), ("Origin", "https://evil.example")], "tools/call", &call);
    assert_eq!(page.refusal(), (403, "origin_refused".to_owned()));
    let viewer = format!("Bearer {}", token(&daemon, &json!({"name": "v", "role": "viewer"})));
    let denied = event(&message(&daemon, &[("Authorization", &viewer)], "tools/call", &call));
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    assert_eq!(denied["result"]["structuredContent"]["code"], "command_denied");
    assert!(daemon.client.runs(&palyra_client::api::ListRunsParams::default()).await.unwrap().runs.is_empty());

    // Nothing is kept between requests: there is no stream to open and no session to end.
    for method in ["GET", "DELETE", "PUT"] {
        let answer = exchange_with(&daemon, &format!("{method} /mcp"), &[("Authorization", &owner)], "");
        assert_eq!(answer.status, 405, "{answer:?}");
    }
    let plain = exchange_with(&daemon, "POST /mcp", &[("Authorization", &owner), ("Accept", "text/html")], "{}");
    assert_eq!(plain.status, 406);
    let bomb = [("Authorization", owner.as_str()), ("Content-Encoding", "gzip")];
    assert_eq!(message(&daemon, &bomb, "tools/list", &json!({})).refusal(), (415, "encoding_unsupported".to_owned()));
    for garbage in ["{", "[]", "{\"jsonrpc\":\"2.0\"}", "\u{0}"] {
        let headers = [
            ("Authorization", owner.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let answer = exchange_with(&daemon, "POST /mcp", &headers, garbage);
        assert!((400..500).contains(&answer.status), "{garbage:?}: {answer:?}");
    }
    let wait = json!({"name": "run_get", "arguments": {"run_id": "x", "wait_seconds": 601}});
    let refused = event(&message(&daemon, &[("Authorization", &owner)], "tools/call", &wait));
    assert_eq!(refused["result"]["structuredContent"]["validation_errors"][0]["field"], "wait_seconds");
}
