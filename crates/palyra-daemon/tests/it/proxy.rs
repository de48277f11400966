//! Behind a reverse proxy at a public origin: the configured one works like the daemon's own address, every other stays refused.

use serde_json::json;

use crate::raw::loopback;
use crate::raw::{Answer, exchange};
use crate::support::{Daemon, Place};

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
