//! After a restart, resumed runs have the tools of skills and of MCP servers over HTTP, as they have those of MCP servers that are programs.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use palyra_common::{RunLifecyclePhase, RunStreamBody};
use palyra_testkit::TestContext;
use serde_json::{Value, json};

use super::outside::daemon;
use super::skills::{done, packed};
use super::{call, finish, task, wait_for_phase, workspace};

/// A model that thinks long enough to be killed over it, and then calls this tool.
fn thinking(tool: &str, arguments: Value) -> Value {
    let mut thinking = call(tool, arguments);
    thinking["delay_ms"] = json!(1500);
    json!({ "turn": [thinking, { "text": "done" }] })
}

/// Kills the daemon while the model thinks; the resumed run has to make its call.
async fn is_called_after_a_restart(context: &TestContext, script: Value, tool: &str) {
    let mut daemon = daemon(context, script).await;
    let place = workspace();
    let run = daemon.client().create_run(&task("use the tool", place.path())).await.unwrap();
    wait_for_phase(&daemon.client(), run.run_id, RunLifecyclePhase::Running).await;
    daemon.kill9().unwrap();
    daemon.restart().await.unwrap();
    let (detail, events) = finish(&daemon.client(), run.run_id).await;
    let results: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            RunStreamBody::ToolResult(result) if result.tool == tool => Some(result),
            _ => None,
        })
        .collect();
    assert!(matches!(results.as_slice(), [result] if result.ok), "{results:?}\n{}", daemon.log());
    assert!(detail.unavailable_tools.is_empty(), "{detail:?}");
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resumed_run_has_the_tools_of_skills() {
    let script = thinking("hello.echo", json!({ "text": "Ada" }));
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    done(&context, &["skills", "keygen", "one.key"]);
    let file = packed(&context, "0.1.0", "one.key");
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    done(&context, &["skills", "install", &file]);
    done(&context, &["daemon", "stop"]);
    is_called_after_a_restart(&context, script, "hello.echo").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resumed_run_has_the_tools_of_servers_over_http() {
    let script = thinking("mcp.web.look", json!({}));
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    // It ends with the process of the test.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    done(&context, &["mcp", "add", "web", "--url", &url]);
    is_called_after_a_restart(&context, script, "mcp.web.look").await;
}

/// One request and its answer; then the connection is closed.
fn serve(mut stream: TcpStream) -> Option<()> {
    let mut text = Vec::new();
    let body = loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
        text.extend_from_slice(&piece[..read]);
        let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&text[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
        let length: usize = length.unwrap_or(0);
        if text.len() >= end + 4 + length {
            break text.split_off(end + 4);
        }
    };
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({ "result": {
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "web", "version": "1" },
        } }),
        Some("tools/list") => json!({ "result": { "tools": [
            { "name": "look", "inputSchema": { "type": "object", "properties": {} } },
        ] } }),
        Some("tools/call") => json!({ "result": { "content": [{ "type": "text", "text": "seen" }] } }),
        _ => json!({ "error": { "code": -32601, "message": "no" } }),
    };
    let (status, answer) = match (&message["id"], result) {
        (Value::Null, _) if body.is_empty() => ("405 Method Not Allowed", String::new()),
        (Value::Null, _) => ("202 Accepted", String::new()),
        (id, mut answer) => {
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = id.clone();
            ("200 OK", answer.to_string())
        }
    };
    let length = answer.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes())).ok()
}
