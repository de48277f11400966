//! Requests as clients send them, and streams taken apart.

use std::net::TcpStream;
use std::time::Duration;

use palyra_client::api::{ListRunsParams, RunView};
use serde_json::{Value, json};

use crate::raw::{Answer, exchange, unix};
use crate::support::Daemon;

/// Posts a document over loopback with a token.
pub(crate) fn post_as(daemon: &Daemon, token: &str, path: &str, body: &Value) -> Answer {
    post_with(daemon, &[("Authorization", &format!("Bearer {token}"))], path, body.to_string().as_bytes())
}

/// Posts a document over loopback as the owner.
pub(crate) fn post(daemon: &Daemon, path: &str, body: &Value) -> Answer {
    post_as(daemon, &daemon.token(), path, body)
}

/// The same with a key.
pub(crate) fn post_once(daemon: &Daemon, key: &str, path: &str, body: &Value) -> Answer {
    let token = format!("Bearer {}", daemon.token());
    let headers = [("Authorization", token.as_str()), ("Idempotency-Key", key)];
    post_with(daemon, &headers, path, body.to_string().as_bytes())
}

/// Posts bytes over loopback with exactly these headers besides those that every request needs.
pub(crate) fn post_with(daemon: &Daemon, headers: &[(&str, &str)], path: &str, body: &[u8]) -> Answer {
    let address = daemon.address();
    let stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let length = body.len().to_string();
    let mut all = vec![("Host", address.as_str()), ("Content-Type", "application/json"), ("Content-Length", &length)];
    all.extend_from_slice(headers);
    exchange(stream, &format!("POST /v1/{path}"), &all, body)
}

/// Makes a token and gives its secret.
pub(crate) fn token(daemon: &Daemon, wanted: &Value) -> String {
    let answer = unix(daemon, "POST /api/v1/tokens", wanted.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["secret"].as_str().unwrap().to_owned()
}

/// A chat about one thing.
pub(crate) fn asking(text: &str) -> Value {
    chat(json!([{ "role": "user", "content": text }]))
}

/// A chat.
pub(crate) fn chat(messages: Value) -> Value {
    let mut request = json!({ "model": "palyra" });
    request["messages"] = messages;
    request
}

/// The same with more parameters.
pub(crate) fn with(mut request: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("not a record: {more}") };
    for (name, value) in more {
        request[name] = value;
    }
    request
}

/// The text of a body that came in chunks.
pub(crate) fn unchunked(answer: &Answer) -> String {
    assert!(answer.head.contains("transfer-encoding: chunked"), "{answer:?}");
    let (mut text, mut rest) = (String::new(), answer.body.as_str());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        text.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    text
}

/// The documents of a stream, without its comments.
pub(crate) fn documents(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// All runs, oldest first.
pub(crate) async fn runs(daemon: &Daemon) -> Vec<RunView> {
    let mut runs = daemon.client.runs(&ListRunsParams::default()).await.unwrap().runs;
    runs.reverse();
    runs
}
