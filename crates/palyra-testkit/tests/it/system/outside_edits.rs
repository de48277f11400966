//! Whose edits they are that were made while a call to an outside server was under way.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use palyra_client::api::RunDetail;
use palyra_common::{ChangeAttribution, RunLifecyclePhase};
use palyra_testkit::{DaemonOptions, Model, TestContext, TestDaemon};
use serde_json::{Value, json};

use super::{call, finish, task, workspace};

/// A server in shell. `work` writes a file of its own and sleeps until there is a line in a pipe.
const PROGRAM: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  path=$(printf '%s' "$line" | sed -n 's/.*"path":"\([^"]*\)".*/\1/p')
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"worker","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"work","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]}}\n' "$id" ;;
    *'"tools/call"'*)
      echo own > "$path/own"
      read -r go < "$path/gate"
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"worked"}]}}\n' "$id" ;;
  esac
done
"#;

/// More than is kept in one piece.
fn long_text() -> String {
    "a person's\n".repeat(200_000)
}

/// Has a person edit, make and remove a file while the server sleeps, and then wakes it.
fn person(root: &Path) -> std::thread::JoinHandle<()> {
    let root = root.to_owned();
    std::thread::spawn(move || {
        // So long that the server is seen to sleep.
        let pause = || std::thread::sleep(Duration::from_secs(1));
        while !root.join("own").exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        pause();
        std::fs::write(root.join("notes.md"), "a person's").unwrap();
        std::fs::write(root.join("person.txt"), long_text()).unwrap();
        std::fs::remove_file(root.join("unwanted")).unwrap();
        pause();
        std::fs::write(root.join("gate"), "go on\n").unwrap();
    })
}

fn attributions(detail: &RunDetail) -> Vec<(&str, ChangeAttribution)> {
    detail.changes.iter().map(|change| (change.path.as_str(), change.attribution)).collect()
}

/// Calls the server's tool once, with a person at work meanwhile.
async fn run_beside_a_person(context: &TestContext, root: &Path, script: Value) -> (TestDaemon, RunDetail) {
    std::fs::write(root.join("unwanted"), "a person's").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(root.join("gate")).status().unwrap().success());
    let options = DaemonOptions::new(Model::Scripted(script)).state_root(&context.state_root());
    let daemon = options.start().await.unwrap();
    let client = daemon.client();
    let run = client.create_run(&task("do the work", root)).await.unwrap();
    let person = person(root);
    let (detail, _) = finish(&client, run.run_id).await;
    person.join().unwrap();
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    (daemon, detail)
}

fn script(root: &Path) -> Value {
    let arguments = json!({ "path": root.display().to_string() });
    json!({ "turn": [call("mcp.worker.work", arguments), { "text": "done" }] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_does_while_a_server_sleeps_survives_an_undo() {
    let place = workspace();
    let root = place.path().canonicalize().unwrap();
    let script = script(&root);
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let program = context.root().join("server.sh");
    std::fs::write(&program, PROGRAM).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let added = context.run(["mcp", "add", "worker", "--", &program.display().to_string()]).unwrap();
    assert_eq!(added.code, 0, "{added}");
    let (daemon, detail) = run_beside_a_person(&context, &root, script).await;
    let (contested, observed) = (ChangeAttribution::Contested, ChangeAttribution::Observed);
    assert_eq!(
        attributions(&detail),
        [("notes.md", contested), ("own", observed), ("person.txt", contested), ("unwanted", contested)]
    );
    let id = detail.run.run_id.to_string();
    let refused = context.run(["runs", "undo", &id]).unwrap();
    assert_eq!(refused.code, 7, "{refused}");
    for path in ["`notes.md`", "`person.txt`", "`unwanted`"] {
        assert!(refused.stderr.contains(path), "{path}: {refused}");
    }
    let undone = context.run(["runs", "undo", &id, "--conflicts", "skip"]).unwrap();
    assert_eq!(undone.code, 0, "{undone}");
    assert!(undone.stdout.contains("own: removed; it was not there before the run"), "{undone}");
    let text = |name: &str| std::fs::read_to_string(root.join(name)).ok();
    assert_eq!(text("notes.md").as_deref(), Some("a person's"));
    assert!(text("person.txt") == Some(long_text()));
    assert_eq!((text("own"), text("unwanted")), (None, None));
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_during_a_call_of_a_local_web_service_may_be_somebody_elses() {
    let place = workspace();
    let root = place.path().canonicalize().unwrap();
    let script = script(&root);
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(stream));
        }
    });
    let added = context.run(["mcp", "add", "worker", "--url", &url]).unwrap();
    assert_eq!(added.code, 0, "{added}");
    let (daemon, detail) = run_beside_a_person(&context, &root, script).await;
    let contested = ChangeAttribution::Contested;
    assert_eq!(
        attributions(&detail),
        [("notes.md", contested), ("own", contested), ("person.txt", contested), ("unwanted", contested)]
    );
    let id = detail.run.run_id.to_string();
    let refused = context.run(["runs", "undo", &id]).unwrap();
    assert!(refused.code == 7 && refused.stderr.contains("`own`"), "{refused}");
    assert!(root.join("own").exists());
    let overwritten = context.run(["runs", "undo", &id, "--conflicts", "overwrite"]).unwrap();
    assert_eq!(overwritten.code, 0, "{overwritten}");
    assert_eq!(std::fs::read_to_string(root.join("notes.md")).unwrap(), "first line\nsecond line\n");
    assert!(root.join("unwanted").exists() && !root.join("person.txt").exists() && !root.join("own").exists());
    // Whoever wrote it gets it back.
    let kept = overwritten.stderr.lines().find_map(|line| line.trim().strip_prefix("person.txt: "));
    assert!(std::fs::read_to_string(kept.unwrap()).unwrap() == long_text(), "{overwritten}");
    daemon.finish().await.unwrap();
}

/// Answers one request as the web service with the same tool.
fn answer(mut stream: TcpStream) {
    let message = read_message(&mut stream);
    let Some(id) = message.get("id") else {
        let _ = stream.write_all(b"HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        return;
    };
    let complete = |mut result: Value| {
        result["resultType"] = json!("complete");
        Ok(result)
    };
    let result = match message["method"].as_str().unwrap() {
        "server/discover" => complete(json!({
            "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private", "capabilities": { "tools": {} },
        })),
        "tools/list" => {
            let properties = json!({ "path": { "type": "string" } });
            let tool = json!({ "name": "work", "inputSchema": { "type": "object", "properties": properties } });
            complete(json!({ "tools": [tool], "ttlMs": 0, "cacheScope": "private" }))
        }
        "tools/call" => {
            let root = Path::new(message["params"]["arguments"]["path"].as_str().unwrap());
            std::fs::write(root.join("own"), "own\n").unwrap();
            std::fs::read(root.join("gate")).unwrap();
            complete(json!({ "content": [{ "type": "text", "text": "worked" }] }))
        }
        _ => Err(json!({ "code": -32601, "message": "Method not found" })),
    };
    let body = match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
    .to_string();
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json";
    let _ = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

fn read_message(stream: &mut TcpStream) -> Value {
    let (mut held, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "the client went away");
        held.extend_from_slice(&part[..read]);
        let Some(end) = held.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&held[..end]).to_ascii_lowercase();
        let length: usize =
            head.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap().trim().parse().unwrap();
        if let Some(body) = held[end + 4..].get(..length) {
            return serde_json::from_slice(body).unwrap();
        }
    }
}
