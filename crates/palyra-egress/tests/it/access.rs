//! Who may use a proxy, and for how long: the token, replacing and withdrawing a grant, records of everything.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_common::SecretString;
use palyra_egress::{ConnectionVerdict, ProxyAccess, RefusalReason, Scheme, Via};
use tokio::io::AsyncReadExt as _;

use crate::harness::{Raw, World, grant, refusal_of, status_of};

async fn world() -> (World, String) {
    let world = World::on_loopback().await;
    world.dns.set("local.example", &["127.0.0.1"]);
    let base = format!("http://local.example:{}", world.servers.http.port());
    (world, base)
}

fn get(base: &str, path: &str, more: &str) -> String {
    let host = base.trim_start_matches("http://");
    format!("GET {base}{path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n")
}

#[tokio::test]
async fn a_token_keeps_strangers_out() {
    let (world, base) = world().await;
    let grant = grant(&[&base]).private_host("loopback:local.example").unwrap();
    let proxy = world.proxy_with(grant, ProxyAccess::Token(SecretString::from("let-me-in".to_owned()))).await;
    let basic = |text: &str| format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(text));
    for (header, status) in [
        (String::new(), 407),
        (basic("palyra:wrong"), 407),
        (basic("let-me-in"), 407),
        ("Proxy-Authorization: Bearer let-me-in\r\n".to_owned(), 407),
        (basic("palyra:let-me-in"), 200),
        (basic("anyone:let-me-in"), 200),
    ] {
        let answer = Raw::ask(proxy.address(), get(&base, "/echo", &header)).await;
        assert_eq!(status_of(&answer), status, "{header}");
        assert!(
            !String::from_utf8_lossy(&answer).to_ascii_lowercase().contains("proxy-authorization:"),
            "the token does not go on to the host"
        );
        let port = world.servers.http.port();
        let tunnel = Raw::ask(
            proxy.address(),
            format!("CONNECT local.example:{port} HTTP/1.1\r\nHost: local.example:{port}\r\n{header}\r\n"),
        )
        .await;
        assert_eq!(status_of(&tunnel), status);
    }
    for (methods, password, accepted) in
        [(&[5_u8, 1, 0][..], "", false), (&[5, 1, 2], "wrong", false), (&[5, 2, 0, 2], "let-me-in", true)]
    {
        let mut raw = Raw::connect(proxy.address()).await;
        raw.say(methods).await;
        let mut chosen = [0; 2];
        raw.stream.read_exact(&mut chosen).await.unwrap();
        if chosen == [5, 0xff] {
            assert!(!accepted);
            continue;
        }
        assert_eq!(chosen, [5, 2]);
        raw.say([&[1, 1, b'u', u8::try_from(password.len()).unwrap()], password.as_bytes()].concat()).await;
        let mut verdict = [0; 2];
        raw.stream.read_exact(&mut verdict).await.unwrap();
        assert_eq!(verdict == [1, 0], accepted, "{password}");
    }
    assert_eq!(world.servers.visits().await.len(), 2);
}

/// The three tests of a capability: granted, not granted, withdrawn meanwhile.
#[tokio::test]
async fn granted_not_granted_withdrawn() {
    let (world, base) = world().await;
    let granted = grant(&[&base]).private_host("loopback:local.example").unwrap();
    let proxy = world.proxy(granted.clone()).await;
    assert_eq!(status_of(&Raw::ask(proxy.address(), get(&base, "/", "")).await), 200);

    let other = get("http://other.example", "/", "");
    let refused = Raw::ask(proxy.address(), &other).await;
    assert_eq!(status_of(&refused), 403);
    let text = String::from_utf8_lossy(&refused).into_owned();
    assert!(text.contains("palyra-egress-error: egress_refused"), "{text}");
    assert!(
        text.contains(r#""missing_line":"rules = [\"GET http://other.example\"]""#),
        "the answer names the line that is missing: {text}"
    );

    // A transfer that is under way ends with its grant.
    let mut running = Raw::connect(proxy.address()).await;
    running.say(get(&base, "/trickle", "")).await;
    assert!(running.head().await.starts_with("HTTP/1.1 200"));
    proxy.revoke();
    running.rest().await;
    let cut = world.log.records().into_iter().find(|record| record.path.as_deref() == Some("/trickle")).unwrap();
    assert_eq!(refusal_of(&cut), Some(RefusalReason::Revoked));
    assert_eq!(status_of(&Raw::ask(proxy.address(), get(&base, "/", "")).await), 403);

    proxy.replace_grant(granted).unwrap();
    assert_eq!(status_of(&Raw::ask(proxy.address(), get(&base, "/", "")).await), 200);
    let address = proxy.address();
    proxy.shutdown().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn every_connection_leaves_a_record_without_secrets() {
    let (world, base) = world().await;
    let port = world.servers.http.port();
    let proxy = world.proxy(grant(&[&base]).private_host("loopback:local.example").unwrap()).await;
    Raw::ask(proxy.address(), get(&base, "/echo?token=hunter2", "Authorization: hunter2\r\n")).await;
    let record = world.record(1).await;
    assert_eq!((record.grant.as_str(), record.via, record.scheme), ("test", Via::HttpProxy, Some(Scheme::Http)));
    assert_eq!((record.host.as_str(), record.port), ("local.example", port));
    assert_eq!(record.address, Some("127.0.0.1".parse().unwrap()));
    assert_eq!(
        (record.method.as_deref(), record.path.as_deref(), record.status),
        (Some("GET"), Some("/echo"), Some(200))
    );
    assert_eq!(record.verdict, ConnectionVerdict::Allowed);
    assert!(record.bytes_down > 50);
    let json = serde_json::to_string(&record).unwrap();
    assert!(!json.contains("hunter2"), "{json}");

    Raw::ask(proxy.address(), get("http://evil.example", "/x?leak=1", "")).await;
    let record = world.record(2).await;
    assert_eq!(refusal_of(&record), Some(RefusalReason::HostNotGranted));
    let ConnectionVerdict::Refused { missing_line, .. } = &record.verdict else { panic!() };
    assert_eq!(missing_line.as_deref(), Some("rules = [\"GET http://evil.example/x\"]"));
    assert_eq!((record.bytes_up, record.bytes_down, record.address), (0, 0, None));
}

/// Hop-by-hop headers end at the proxy in both directions; the proxy follows no redirect.
#[tokio::test]
async fn what_belongs_to_a_connection_stays_there() {
    let (world, base) = world().await;
    let proxy = world.proxy(grant(&[&base]).private_host("loopback:local.example").unwrap()).await;
    let more = "Connection: close, X-Private\r\nX-Private: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nTE: trailers\r\nUpgrade: h2c\r\nX-Public: 1\r\n";
    let answer = Raw::ask(proxy.address(), get(&base, "/", more)).await;
    let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    assert!(text.contains("x-kept: yes") && !text.contains("keep-alive: timeout"), "{text}");
    let said = String::from_utf8_lossy(&world.servers.visits().await[0].said).to_ascii_lowercase();
    assert!(said.contains("x-public: 1"), "{said}");
    for gone in ["x-private", "keep-alive", "proxy-connection", "te:", "upgrade", "connection:"] {
        assert!(!said.contains(gone), "{gone} went on: {said}");
    }
    let answer = Raw::ask(proxy.address(), get(&base, "/redirect?http://127.0.0.1/", "")).await;
    assert_eq!(status_of(&answer), 302);
    assert_eq!(world.servers.visits().await.len(), 1);
}
