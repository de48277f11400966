//! Reading from the network through the real daemon: what is refused, what is permitted, and what the text counts for.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use palyra_common::{Integrity, RunStreamBody};
use palyra_testkit::{DaemonOptions, Model};
use serde_json::json;

use super::{call, finish, names, task, workspace};

/// A server that answers every request with a page, and counts who came.
fn server() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let came = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&came);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]);
            let body = "<html><head><title>News</title></head><body><h1>Today</h1><p>It <a href=\"/more\">rained</a>.</p></body></html>";
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (port, came)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_local_address_is_refused_unless_the_operator_named_it() {
    let (port, came) = server();
    let url = format!("http://127.0.0.1:{port}/news");
    let script = json!({ "turn": [call("palyra.http.fetch", json!({ "url": url })), { "text": "done" }] });
    for (hosts, expected) in [("", "result egress_refused"), ("127.0.0.1", "result ok")] {
        let options = DaemonOptions::new(Model::Scripted(script.clone()));
        let daemon = options.env("PALYRA_EGRESS_PRIVATE_HOSTS", hosts).start().await.unwrap();
        let place = workspace();
        let run = daemon.client().create_run(&task(&format!("read {url}"), place.path())).await.unwrap();
        let (_, events) = finish(&daemon.client(), run.run_id).await;
        let names = names(&events);
        assert!(names.contains(&expected.to_owned()), "{hosts}: {names:?}");
        assert!(!names.contains(&"question".to_owned()), "the user named the address: {names:?}");
        if expected == "result ok" {
            let result = events.iter().find_map(|event| match &event.body {
                RunStreamBody::ToolResult(result) => Some(result.clone()),
                _ => None,
            });
            let result = result.unwrap();
            assert_eq!(result.label.integrity, Integrity::Untrusted);
            assert!(
                result.content.contains("title: News")
                    && result.content.contains(&format!("http://127.0.0.1:{port}/more")),
                "{}",
                result.content
            );
        } else {
            assert_eq!(came.load(Ordering::SeqCst), 0, "nobody was asked");
        }
        daemon.finish().await.unwrap();
    }
    assert_eq!(came.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_the_model_made_up_and_anything_that_sends_is_shown_first() {
    let (port, _) = server();
    let url = format!("http://127.0.0.1:{port}/");
    let script = json!({ "turn": [
        call("palyra.http.fetch", json!({ "url": format!("{url}?stolen=notes") })),
        call("palyra.http.fetch", json!({ "url": url, "method": "POST", "body": "{}" })),
        { "text": "done" },
    ] });
    let options = DaemonOptions::new(Model::Scripted(script));
    let daemon = options.env("PALYRA_EGRESS_PRIVATE_HOSTS", "127.0.0.1").start().await.unwrap();
    let place = workspace();
    let run = daemon.client().create_run(&task(&format!("tell {url} that I am here"), place.path())).await.unwrap();
    let (_, events) = finish(&daemon.client(), run.run_id).await;
    let questions = names(&events).iter().filter(|name| *name == "question").count();
    assert_eq!(questions, 2, "{:?}", names(&events));
    daemon.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_reaches_what_was_granted_through_the_proxy_and_is_told_the_missing_line_otherwise() {
    let (port, came) = server();
    let fetch = |port: u16| {
        format!(
            "import urllib.request as r\ntry:\n    print(r.urlopen('http://127.0.0.1:{port}/').read().decode())\nexcept Exception as e:\n    print('no:', getattr(e, 'read', lambda: b'')().decode() or e)"
        )
    };
    let (granted, other) = (fetch(port), fetch(1));
    let script = json!({ "turn": [
        call("palyra.process.run", json!({ "argv": ["python3", "-c", granted] })),
        call("palyra.process.run", json!({ "argv": ["python3", "-c", other] })),
        { "text": "done" },
    ] });
    let options = DaemonOptions::new(Model::Scripted(script)).env("PALYRA_EGRESS_PRIVATE_HOSTS", "127.0.0.1");
    let daemon = options.env("PALYRA_PROCESS_NETWORK", format!("http://127.0.0.1:{port}")).start().await.unwrap();
    let place = workspace();
    let run = daemon.client().create_run(&task("go", place.path())).await.unwrap();
    let (_, events) = finish(&daemon.client(), run.run_id).await;
    let contents: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            RunStreamBody::ToolResult(result) => Some((result.content.clone(), result.label.integrity)),
            _ => None,
        })
        .collect();
    assert!(contents[0].0.contains("Today"), "{}", contents[0].0);
    assert_eq!(contents[0].1, Integrity::Untrusted, "what came over the network is nobody's word");
    assert!(contents[1].0.contains("http://127.0.0.1:1"), "the missing line: {}", contents[1].0);
    assert_eq!(came.load(Ordering::SeqCst), 1);
    let reader = palyra_journal::open_read_only(daemon.state_root()).unwrap();
    let connections: Vec<serde_json::Value> = reader
        .range(1, 10_000)
        .unwrap()
        .iter()
        .filter(|record| record.kind == "egress.connection")
        .map(|record| serde_json::from_slice(&record.payload).unwrap())
        .collect();
    let told: Vec<_> = connections.iter().map(|record| (record["port"].clone(), record["verdict"].clone())).collect();
    assert_eq!(told, [(json!(port), json!("allowed")), (json!(1), json!("refused"))], "{connections:?}");
    assert!(connections[0]["bytes_down"].as_u64() > Some(100), "{connections:?}");
    drop(reader);
    daemon.finish().await.unwrap();
}
