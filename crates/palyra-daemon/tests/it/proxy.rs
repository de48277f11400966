//! Behind a reverse proxy at a public origin: the configured one works like the daemon's own address, every other stays refused.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::raw::loopback;
use crate::raw::{Answer, exchange};
use crate::support::{Daemon, Place};
use crate::things::token;

const HOST: (&str, &str) = ("Host", "agents.example");

fn behind_a_proxy() -> Place {
    Place::new()
        .with("PALYRA_HTTP_PUBLIC_ORIGINS", "https://agents.example")
        .with("PALYRA_HTTP_TRUSTED_PROXIES", "127.0.0.1")
}

fn log_in(daemon: &Daemon, origin: &str) -> Answer {
    let body = json!({ "token": daemon.token() }).to_string();
    let length = body.len().to_string();
    let headers = [HOST, ("Origin", origin), ("Content-Length", length.as_str())];
    let stream = std::net::TcpStream::connect(daemon.address()).unwrap();
    exchange(stream, "POST /console/v1/login", &headers, body.as_bytes())
}

#[tokio::test]
async fn the_public_origin_is_served_with_cookies_for_tls() {
    let place = behind_a_proxy();
    let daemon = place.start().await;
    let bearer = format!("Bearer {}", daemon.token());
    let answer = loopback(&daemon, "GET /api/v1/principal", &[HOST, ("Authorization", &bearer)]);
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = log_in(&daemon, "https://agents.example");
    assert_eq!(answer.status, 200, "{answer:?}");
    let cookie = answer.raw_header("set-cookie");
    assert!(cookie.starts_with("__Host-palyra-console=") && cookie.ends_with("; Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    // The same cookie in two fields, as clients of HTTP/2 split them.
    let headers = [HOST, ("Cookie", "theme=dark"), ("Cookie", cookie)];
    let answer = loopback(&daemon, "GET /console/v1/session", &headers);
    assert_eq!(answer.status, 200, "{answer:?}");
    for origin in ["http://agents.example", "https://evil.example", "null"] {
        assert_eq!(log_in(&daemon, origin).refusal(), (403, "origin_refused".to_owned()), "{origin}");
    }
    for host in ["evil.example", "agents.example:7142", "agents.example.evil.example"] {
        let answer = loopback(&daemon, "GET /healthz", &[("Host", host)]);
        assert_eq!(answer.refusal(), (403, "host_refused".to_owned()), "{host}");
    }
    let own = daemon.address();
    let answer = loopback(&daemon, "GET /api/v1/principal", &[("Host", &own), ("Authorization", &bearer)]);
    assert_eq!(answer.status, 200, "the own address works as before: {answer:?}");
}

#[tokio::test]
async fn whoever_is_no_trusted_proxy_cannot_use_the_public_origin() {
    let place = behind_a_proxy().with("PALYRA_HTTP_TRUSTED_PROXIES", "192.0.2.1");
    let daemon = place.start().await;
    let answer = loopback(&daemon, "GET /healthz", &[HOST, ("X-Forwarded-For", "192.0.2.1")]);
    assert_eq!(answer.refusal(), (403, "host_refused".to_owned()));
}

/// Files that the daemon may open: 40 connections to each listener, 30 of them of one principal.
const FILES: u32 = 240;
const SHARE: usize = 30;

/// A WebSocket by the proxy, which is under way for as long as it is open.
fn socket(daemon: &Daemon, token: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(
        stream,
        "GET /acp/v1/ws HTTP/1.1\r\nHost: agents.example\r\nAuthorization: Bearer {token}\r\nX-Forwarded-For: 192.0.2.7\r\n\
         Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).unwrap();
    (stream, String::from_utf8_lossy(&line).into_owned())
}

#[tokio::test]
async fn one_principal_behind_the_proxy_leaves_room_for_the_owner_and_strangers_take_none() {
    let place = behind_a_proxy().with_files(FILES);
    let daemon = place.start().await;
    let (program, _) = token(&daemon, &json!({ "name": "ci", "role": "operator", "subject": "ci" }));
    let mut open = Vec::new();
    for _ in 0..SHARE {
        let (stream, line) = socket(&daemon, &program);
        assert_eq!(line, "HTTP/1.1 101", "connection {}", open.len());
        open.push(stream);
    }
    let bearer = |token: &str| format!("Bearer {token}");
    let refused = loopback(&daemon, "GET /api/v1/principal", &[HOST, ("Authorization", &bearer(&program))]);
    assert_eq!(refused.refusal(), (503, "connections_exhausted".to_owned()));
    // Strangers by the same proxy, more than there are slots.
    let _strangers: Vec<_> = (0..100).map(|_| TcpStream::connect(daemon.address()).unwrap()).collect();
    for _ in 0..20 {
        let answer = loopback(&daemon, "GET /api/v1/principal", &[HOST, ("Authorization", &bearer(&daemon.token()))]);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    // A connection that is given up makes room for another of the same principal.
    open.pop();
    let (mut tries, patience) = (0, 200);
    while socket(&daemon, &program).1 != "HTTP/1.1 101" {
        tries += 1;
        assert!(tries < patience, "there is no room again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
