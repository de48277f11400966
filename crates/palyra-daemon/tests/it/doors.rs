//! Who gets in, by which door.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use palyra_common::HealthStatus;

use crate::raw::{loopback, unix};
use crate::support::Place;

#[tokio::test]
async fn health_answers_at_both_doors() {
    let place = Place::new();
    let daemon = place.start().await;
    let health = daemon.client.health().await.unwrap();
    assert_eq!(health.status, HealthStatus::Ok, "{health:?}");
    assert_eq!(health.pid, daemon.pid());
    assert_eq!(health.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(health.state_root, place.state_root().display().to_string());
    assert_eq!(health.provider.name, "offline");
    assert!(health.provider.reason.contains("nothing is sent"), "{}", health.provider.reason);
    let components: Vec<_> = health.components.iter().map(|component| component.component.as_str()).collect();
    assert_eq!(components, ["journal", "http", "provider", "policy", "runs", "grpc", "quic"]);
    let provider = &health.components[2].summary;
    assert!(provider.contains("not a language model"), "{provider}");

    let address = daemon.address();
    let answer = loopback(&daemon, "GET /healthz", &[("Host", &address)]);
    assert_eq!(answer.status, 200, "{answer:?}");
    // A stranger learns nothing about the machine.
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(answer.json(), serde_json::json!({ "status": "ok", "version": version }));
    let (right, wrong) = (format!("Bearer {}", daemon.token()), "Bearer wrong");
    let answer = loopback(&daemon, "GET /healthz", &[("Host", &address), ("Authorization", &right)]);
    assert_eq!(answer.json()["pid"], daemon.pid());
    let answer = loopback(&daemon, "GET /healthz", &[("Host", &address), ("Authorization", wrong)]);
    assert_eq!(answer.refusal(), (401, "token_refused".to_owned()));
    let pid = std::fs::read_to_string(place.state_root().join("palyrad.pid")).unwrap();
    assert_eq!(pid.trim(), daemon.pid().to_string());
}

#[tokio::test]
async fn loopback_needs_the_token_and_the_right_name() {
    let place = Place::new();
    let daemon = place.start().await;
    let (address, token) = (daemon.address(), daemon.token());
    let (right, wrong) = (format!("Bearer {token}"), format!("Bearer {}", "A".repeat(token.len())));
    let host = ("Host", address.as_str());
    let runs = "GET /api/v1/runs";

    let answer = loopback(&daemon, runs, &[host]);
    assert_eq!(answer.refusal(), (401, "token_refused".to_owned()));
    assert!(answer.head.contains("www-authenticate: bearer"), "{}", answer.head);
    assert_eq!(loopback(&daemon, runs, &[host, ("Authorization", &wrong)]).refusal().0, 401);
    assert_eq!(loopback(&daemon, runs, &[host, ("Authorization", &right)]).status, 200);
    let port = address.rsplit(':').next().unwrap();
    let localhost = format!("localhost:{port}");
    assert_eq!(loopback(&daemon, runs, &[("Host", &localhost), ("Authorization", &right)]).status, 200);

    let evil = format!("evil.example:{port}");
    for route in ["GET /healthz", runs] {
        let answer = loopback(&daemon, route, &[("Host", &evil), ("Authorization", &right)]);
        assert_eq!(answer.refusal(), (403, "host_refused".to_owned()), "{route}");
    }
    // A stranger does not even learn which routes there are.
    assert_eq!(loopback(&daemon, "GET /nowhere", &[host]).refusal().0, 401);
    // On the socket the kernel vouches for the caller.
    assert_eq!(unix(&daemon, runs, b"").status, 200);
}

#[tokio::test]
async fn what_opens_the_doors_is_private() {
    let place = Place::new();
    let daemon = place.start().await;
    let mode = |name: &str| std::fs::metadata(daemon.state_root.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    for name in ["palyrad.sock", "local.token", "palyrad.lock", "palyrad.pid", "http.addr", "grpc.addr", "quic.addr"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    assert_eq!(daemon.token().len(), 43);
}

#[tokio::test]
async fn a_taken_port_degrades_and_the_socket_works() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let place = Place::new().with("PALYRA_DAEMON_HTTP_BIND", &address);
    let daemon = place.start().await;
    let health = daemon.client.health().await.unwrap();
    assert_eq!(health.status, HealthStatus::Degraded);
    let http = health.components.iter().find(|component| component.component == "http").unwrap();
    assert_eq!(http.status, HealthStatus::Degraded);
    assert!(http.summary.contains(&address), "{http:?}");
    assert!(http.hint.as_ref().unwrap().contains("daemon.http_bind"), "{http:?}");
    assert!(!daemon.state_root.join("http.addr").exists());
    assert!(daemon.client.runs(&Default::default()).await.unwrap().runs.is_empty());
}

#[tokio::test]
async fn http_can_be_switched_off() {
    let place = Place::new().with("PALYRA_DAEMON_HTTP_ENABLED", "false").with("PALYRA_GRPC_ENABLED", "false");
    let daemon = place.start().await;
    assert_eq!(daemon.client.health().await.unwrap().status, HealthStatus::Ok);
    assert!(!daemon.state_root.join("http.addr").exists());
    assert!(!daemon.state_root.join("grpc.addr").exists());
    assert!(!daemon.state_root.join("local.token").exists());
}
