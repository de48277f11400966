//! Requests that are made to hurt: each is refused or let run dry, and meanwhile everybody else is answered.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::raw::{exchange, exchange_with, loopback_json, unix};
use crate::support::{Daemon, Place};

/// What the daemon may grow by under any of this.
pub(crate) const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Peak memory of the daemon so far.
pub(crate) fn peak(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

/// The daemon is alive, answers at once and has not grown.
pub(crate) async fn unharmed(daemon: &Daemon, before: u64) {
    let health = tokio::time::timeout(Duration::from_secs(10), daemon.client.health()).await;
    assert_eq!(health.expect("nobody is answered").unwrap().pid, daemon.pid());
    let grown = peak(daemon).saturating_sub(before);
    assert!(grown < MOST_BYTES, "the daemon grew by {grown} bytes");
}

#[tokio::test]
async fn what_is_packed_is_not_unpacked() {
    let place = Place::new();
    let daemon = place.start().await;
    let token = format!("Bearer {}", daemon.token());
    for encoding in ["gzip", "br", "deflate", "zstd", "gzip, gzip"] {
        let headers = [("Authorization", token.as_str()), ("Content-Encoding", encoding)];
        let answer = exchange_with(&daemon, "POST /api/v1/runs", &headers, "xxxx");
        assert_eq!(answer.refusal(), (415, "encoding_unsupported".to_owned()), "{encoding}");
    }
}

#[tokio::test]
async fn heads_have_a_size() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let large = "x".repeat(80 * 1024);
    let many: Vec<_> = (0..500).map(|number| format!("X-{number}: 1\r\n")).collect();
    for headers in [format!("X-Large: {large}\r\n"), many.concat()] {
        let mut stream = TcpStream::connect(daemon.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", daemon.address());
        // It may be refused before it is sent to its end.
        let _ = stream.write_all(head.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    unharmed(&daemon, before).await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_refused() {
    let place = Place::new();
    let daemon = place.start().await;
    let token = format!("Bearer {}", daemon.token());
    let host = daemon.address();
    let body: &[u8] = b"{\"prompt\":\"\xff\xfe\",\"workspace\":\"/\"}";
    let length = body.len().to_string();
    let headers = [("Host", host.as_str()), ("Authorization", token.as_str()), ("Content-Length", length.as_str())];
    let stream = TcpStream::connect(&host).unwrap();
    let answer = exchange(stream, "POST /api/v1/runs", &headers, body);
    assert_eq!(answer.refusal(), (400, "body_malformed".to_owned()));
    for line in ["GET /api/v1/runs/%ff%fe", "GET /api/v1/runs?limit=%ff", "GET /%ff", "GET /api/v1/runs/..%2f..%2fetc"]
    {
        let answer = loopback_json(&daemon, line, Some(&daemon.token()), "");
        assert!((400..500).contains(&answer.status), "{line}: {answer:?}");
    }
}

#[tokio::test]
async fn many_who_say_little_keep_nobody_waiting() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let open: Vec<_> = (0..300)
        .map(|number| {
            let mut stream = TcpStream::connect(daemon.address()).unwrap();
            // Some say nothing, some begin a version, a head or a body.
            let said: [&[u8]; 4] =
                [b"", b"P", b"GET /healthz HTTP/1.1\r\nHost:", b"POST /console/v1/login HTTP/1.1\r\n"];
            stream.write_all(said[number % 4]).unwrap();
            stream
        })
        .collect();
    assert_eq!(loopback_json(&daemon, "GET /api/v1/runs", Some(&daemon.token()), "").status, 200);
    unharmed(&daemon, before).await;
    drop(open);
}

#[tokio::test]
async fn streams_that_are_opened_and_dropped_in_a_rush_end_their_own_connection() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let socket = tokio::net::TcpStream::connect(daemon.address()).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    let driver = tokio::spawn(connection);
    let mut begun = 0;
    for _ in 0..5_000 {
        let Ok(mut ready) = client.clone().ready().await else { break };
        let request = http::Request::get(format!("http://{}/healthz", daemon.address())).body(()).unwrap();
        let Ok((_, mut stream)) = ready.send_request(request, true) else { break };
        stream.send_reset(h2::Reason::CANCEL);
        begun += 1;
        if begun % 50 == 0 {
            tokio::task::yield_now().await;
        }
    }
    assert!(begun > 0);
    unharmed(&daemon, before).await;
    driver.abort();
}

#[tokio::test]
async fn a_key_gives_one_effect_and_never_another() {
    let place = Place::new();
    let daemon = place.start().await;
    let token = format!("Bearer {}", daemon.token());
    let give = |key: &str, line: &str, body: &str| {
        exchange_with(&daemon, line, &[("Authorization", &token), ("Idempotency-Key", key)], body)
    };
    let new = "POST /api/v1/sessions";
    let first = give("a", new, r#"{"title":"one"}"#);
    let again = give("a", new, r#"{"title":"one"}"#);
    assert_eq!((first.status, &first.json()["session_id"]), (200, &again.json()["session_id"]));
    assert!(!first.head.contains("idempotency-replayed") && again.head.contains("idempotency-replayed: true"));
    assert_eq!(give("a", new, r#"{"title":"two"}"#).refusal(), (409, "idempotency_conflict".to_owned()));
    assert_eq!(give("a", "POST /api/v1/sessions/resolve", r#"{"session_key":"k"}"#).status, 409);

    let task = json!({"prompt": "list the files", "workspace": place.workspace()}).to_string();
    let first = give("r", "POST /api/v1/runs", &task);
    let again = give("r", "POST /api/v1/runs", &task);
    assert_eq!((first.status, &first.json()["run_id"]), (200, &again.json()["run_id"]), "{again:?}");
    assert!(!first.head.contains("idempotency-replayed") && again.head.contains("idempotency-replayed: true"));
    let other = json!({"prompt": "another", "workspace": place.workspace()}).to_string();
    assert_eq!(give("r", "POST /api/v1/runs", &other).refusal(), (409, "idempotency_conflict".to_owned()));
    // A key belongs to whoever uses it, and secrets are not kept for a second answer.
    assert_eq!(give("t", "POST /api/v1/tokens", r#"{"name":"n","role":"viewer"}"#).refusal().0, 422);
    let made = unix(&daemon, "POST /api/v1/tokens", br#"{"name":"n","role":"operator","subject":"mallory"}"#).json();
    let theirs = format!("Bearer {}", made["secret"].as_str().unwrap());
    let answer =
        exchange_with(&daemon, new, &[("Authorization", &theirs), ("Idempotency-Key", "a")], r#"{"title":"one"}"#);
    assert!(!answer.head.contains("idempotency-replayed"), "{answer:?}");
    assert_eq!(answer.json()["owner"], "user:mallory");
}
