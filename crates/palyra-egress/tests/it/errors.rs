//! Whatever goes wrong is named, and nothing is half started.

use std::sync::Arc;

use palyra_common::{ErrorCategory, ToStableError as _};
use palyra_egress::{
    Egress, EgressGrant, EgressOptions, FetchRequest, NameServer, ProxyAccess, ProxyOptions, Rule, Trust, bind,
};

use crate::harness::{Authority, Raw, World, grant, status_of};

#[tokio::test]
async fn a_taken_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = bind(address).await.unwrap_err();
    assert_eq!(error.code(), "egress_listen_failed");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn wrong_grants_start_nothing() {
    assert_eq!(Rule::parse("https://*").unwrap_err().code(), "egress_rule_invalid");
    let egress = Egress::new(EgressOptions::default()).unwrap();
    let mut grant = EgressGrant::new("zero");
    grant.limits.time_ms = 0;
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let error = egress.serve(listener, ProxyOptions { grant: grant.clone(), access: ProxyAccess::Open }).unwrap_err();
    assert_eq!(error.code(), "egress_grant_invalid");
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens");
    assert_eq!(
        egress.client().send(&grant, FetchRequest::get("http://a.example/")).await.unwrap_err().code(),
        "egress_grant_invalid"
    );
}

#[tokio::test]
async fn wrong_certificate_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let with = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let good = Authority::new("a").pem();
    let cut = good.replace("-----END CERTIFICATE-----", "");
    for trust in [
        Trust::File(folder.path().join("missing.pem")),
        Trust::File(with("empty.pem", "")),
        Trust::File(with("nonsense.pem", "hello")),
        Trust::File(with("cut.pem", &cut)),
        Trust::Pem("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned()),
        Trust::SystemAnd(folder.path().join("missing.pem")),
    ] {
        let shown = format!("{trust:?}");
        let error = Egress::new(EgressOptions { trust, ..EgressOptions::default() }).unwrap_err();
        assert_eq!(error.code(), "egress_trust_unusable", "{shown}");
    }
    assert!(
        Egress::new(EgressOptions { trust: Trust::File(with("good.pem", &good)), ..EgressOptions::default() }).is_ok()
    );
}

#[tokio::test]
async fn a_host_that_fails_is_named() {
    let world = World::on_loopback().await;
    world.dns.set("api.example", &["127.0.0.1"]);
    world.dns.set("other.example", &["127.0.0.1"]);
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (http, https) = (world.servers.http.port(), world.servers.https.port());
    let rules = [
        format!("http://api.example:{dead}"),
        format!("https://api.example:{dead}"),
        format!("http://api.example:{http}"),
        format!("https://other.example:{https}"),
        "http://unknown.example".to_owned(),
    ];
    let grant = grant(&rules.iter().map(String::as_str).collect::<Vec<_>>())
        .private_host("loopback:api.example")
        .unwrap()
        .private_host("loopback:other.example")
        .unwrap();
    let proxy = world.proxy(grant.clone()).await;
    for (url, code) in [
        (format!("http://api.example:{dead}/"), "egress_connect_failed"),
        (format!("https://other.example:{https}/"), "egress_tls_failed"),
        ("http://unknown.example/".to_owned(), "egress_resolve_failed"),
        (format!("http://api.example:{http}/nonsense"), "egress_protocol_failed"),
        (format!("http://api.example:{http}/switch"), "egress_protocol_failed"),
        (format!("http://api.example:{http}/two-lengths"), "egress_protocol_failed"),
    ] {
        let error = world.egress.client().send(&grant, FetchRequest::get(&url)).await.unwrap_err();
        assert_eq!(error.code(), code, "{url}: {error}");
        assert_eq!(error.to_stable().category, ErrorCategory::Dependency);
        assert!(error.to_stable().recovery_hint.is_some());
        let host = url.split('/').nth(2).unwrap();
        let heard = Raw::ask(proxy.address(), format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!(status_of(&heard), 502, "{url}");
        assert!(String::from_utf8_lossy(&heard).contains(code), "{}", String::from_utf8_lossy(&heard));
    }
    let (mut raw, head) = Raw::tunnel(proxy.address(), &format!("api.example:{dead}")).await;
    assert!(head.starts_with("HTTP/1.1 502"), "a dead host is reported before the tunnel stands: {head}");
    assert!(String::from_utf8_lossy(&raw.rest().await).contains("egress_connect_failed"));
    let (_, status) = Raw::socks(proxy.address(), 3, b"api.example", dead).await;
    assert_eq!(status, Some(5), "connection refused, as SOCKS says it");
}

/// A name server that does not answer at all.
#[tokio::test]
async fn a_silent_name_server_is_named() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let resolver = Arc::new(NameServer::new(silent.local_addr().unwrap()));
    let egress = Egress::new(EgressOptions { resolver, ..EgressOptions::default() }).unwrap();
    let mut grant = grant(&["http://api.example"]);
    grant.limits.connect_ms = 300;
    let error = egress.client().send(&grant, FetchRequest::get("http://api.example/")).await.unwrap_err();
    assert_eq!(error.code(), "egress_timed_out", "{error}");
}
