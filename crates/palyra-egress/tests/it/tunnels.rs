//! Tunnels: passed on unseen, opened where the grant says so, and for protocols that are not HTTP.

use std::os::fd::OwnedFd;

use palyra_egress::{EgressGrant, Intercept, ProxyAccess, ProxyOptions, RefusalReason, Scheme, Via, listener_from_fd};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::harness::{PUBLIC, Raw, World, client_hello, grant, in_own_network, refusal_of, sandbox, status_of};

async fn world() -> World {
    let world = World::on_loopback().await;
    world.dns.set("api.example", &["127.0.0.1"]);
    world
}

fn local(rules: &[&str]) -> EgressGrant {
    grant(rules).private_host("loopback:api.example").unwrap()
}

fn inside(path: &str, port: u16) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: api.example:{port}\r\nConnection: close\r\n\r\n")
}

#[tokio::test]
async fn a_tunnel_is_passed_on_unseen() {
    let world = world().await;
    let port = world.servers.https.port();
    let proxy = world.proxy(local(&[&format!("https://api.example:{port}")])).await;
    let (raw, head) = Raw::tunnel(proxy.address(), &format!("API.example:{port}")).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // The host's own certificate: nobody stood in between.
    let answer = raw.ask_inside(&world.authority.pem(), "api.example", inside("/echo", port)).await.unwrap();
    assert_eq!(status_of(&answer), 200);
    let record = world.record(1).await;
    assert_eq!(
        (record.via, record.scheme, record.inspected, record.path.clone()),
        (Via::Connect, Some(Scheme::Https), false, None)
    );
    assert!(record.bytes_up > 300 && record.bytes_down > 500, "{record:?}");
    assert!(proxy.authority_pem().is_none());
}

#[tokio::test]
async fn a_rule_with_a_path_opens_the_tunnel_or_refuses_it() {
    let world = world().await;
    let port = world.servers.https.port();
    let mut grant = local(&[&format!("GET https://api.example:{port}/v1")]);
    let closed = world.proxy(grant.clone()).await;
    let (mut raw, head) = Raw::tunnel(closed.address(), &format!("api.example:{port}")).await;
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    assert!(String::from_utf8_lossy(&raw.rest().await).contains(r#"intercept = \"when_granted\""#));
    assert_eq!(refusal_of(&world.record(1).await), Some(RefusalReason::InspectionNeeded));

    grant.intercept = Intercept::WhenGranted;
    let open = world.proxy(grant).await;
    let authority = open.authority_pem().unwrap().to_owned();
    for (path, status) in [("/v1/x", 200), ("/v2", 403), ("/v1/%2e%2e/v2", 403)] {
        let (raw, _) = Raw::tunnel(open.address(), &format!("api.example:{port}")).await;
        let answer = raw.ask_inside(&authority, "api.example", inside(path, port)).await.unwrap();
        assert_eq!(status_of(&answer), status, "{path}");
    }
    // Another Host inside the same tunnel, and a client that trusts somebody else.
    let (raw, _) = Raw::tunnel(open.address(), &format!("api.example:{port}")).await;
    let answer =
        raw.ask_inside(&authority, "api.example", "GET /v1 HTTP/1.1\r\nHost: evil.example\r\n\r\n").await.unwrap();
    assert_eq!(status_of(&answer), 403);
    let (raw, _) = Raw::tunnel(open.address(), &format!("api.example:{port}")).await;
    let error = raw.ask_inside(&world.authority.pem(), "api.example", inside("/v1", port)).await.unwrap_err();
    assert!(error.contains("UnknownIssuer"), "the host's authority does not vouch for the proxy: {error}");
    assert_eq!(world.servers.visits().await.iter().filter(|visit| visit.bytes > 0).count(), 1);
    let records = world.log.records();
    let allowed = records.iter().find(|record| record.status == Some(200)).unwrap();
    assert_eq!((allowed.inspected, allowed.path.as_deref()), (true, Some("/v1/x")));

    // Every sandbox has an authority of its own.
    let mut other = local(&[&format!("GET https://api.example:{port}/v1")]);
    other.intercept = Intercept::WhenGranted;
    assert_ne!(world.proxy(other).await.authority_pem().unwrap(), authority);
}

/// The host behind an opened tunnel is verified by the proxy: a host that cannot prove its name is not talked to.
#[tokio::test]
async fn an_opened_tunnel_still_verifies_the_host() {
    let world = world().await;
    world.dns.set("imposter.example", &["127.0.0.1"]);
    let port = world.servers.https.port();
    let mut grant =
        grant(&[&format!("GET https://imposter.example:{port}")]).private_host("loopback:imposter.example").unwrap();
    grant.intercept = Intercept::WhenGranted;
    let proxy = world.proxy(grant).await;
    let (raw, _) = Raw::tunnel(proxy.address(), &format!("imposter.example:{port}")).await;
    let request = format!("GET / HTTP/1.1\r\nHost: imposter.example:{port}\r\nConnection: close\r\n\r\n");
    let answer = raw.ask_inside(proxy.authority_pem().unwrap(), "imposter.example", request).await.unwrap();
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with("HTTP/1.1 502") && text.contains("egress_tls_failed"), "{text}");
}

/// A server that speaks first, which no proxy that waits for a greeting could serve.
#[tokio::test]
async fn a_tcp_rule_passes_anything_on() {
    let world = world().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                stream.write_all(b"220 ready\r\n").await.unwrap();
                let mut heard = Vec::new();
                stream.read_to_end(&mut heard).await.unwrap();
                stream.write_all(&heard).await.unwrap();
            });
        }
    });
    let proxy = world.proxy(local(&[&format!("tcp://api.example:{port}")])).await;
    let (mut raw, status) = Raw::socks(proxy.address(), 3, b"api.example", port).await;
    assert_eq!(status, Some(0));
    let mut first = [0; 11];
    raw.stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"220 ready\r\n");
    // Megabytes both ways, and the end of one direction does not end the other.
    let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut reader, mut writer) = raw.stream.into_split();
    let (heard, ()) = tokio::join!(
        async {
            let mut heard = Vec::new();
            reader.read_to_end(&mut heard).await.unwrap();
            heard
        },
        async {
            writer.write_all(&sent).await.unwrap();
            writer.shutdown().await.unwrap();
        }
    );
    assert!(heard == sent, "{} bytes came back of {}", heard.len(), sent.len());
    let record = world.record(1).await;
    assert_eq!((record.via, record.scheme), (Via::Socks5, Some(Scheme::Tcp)));
    assert_eq!((record.bytes_up, record.bytes_down), (3_000_000, 3_000_011));
}

#[tokio::test]
async fn a_listener_made_elsewhere_is_served() {
    let world = world().await;
    let port = world.servers.http.port();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let listener = listener_from_fd(OwnedFd::from(listener)).unwrap();
    let grant = local(&[&format!("http://api.example:{port}")]);
    let proxy = world.egress.serve(listener, ProxyOptions { grant, access: ProxyAccess::Open }).unwrap();
    assert_eq!(proxy.address(), address);
    let answer =
        Raw::ask(address, format!("GET http://api.example:{port}/ HTTP/1.1\r\nHost: api.example:{port}\r\n\r\n")).await;
    assert_eq!(status_of(&answer), 200);
    let file = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(listener_from_fd(OwnedFd::from(file)).unwrap_err().code(), "egress_listen_failed");
}

/// The shape of a sandbox: the listener is in a network with nothing else in it, the proxy outside.
#[test]
fn a_listener_in_another_network_is_the_only_way_out() {
    in_own_network("tunnels::a_listener_in_another_network_is_the_only_way_out", || async {
        let world = World::new().await;
        world.dns.set("api.example", &[PUBLIC]);
        let (give_listener, listener) = std::sync::mpsc::channel();
        let (give_proxy, proxy) = std::sync::mpsc::channel::<()>();
        let heard = tokio::task::spawn_blocking(move || {
            sandbox(move || async move {
                let listener = std::net::TcpListener::bind("127.0.0.1:3128").unwrap();
                give_listener.send(OwnedFd::from(listener)).unwrap();
                proxy.recv().unwrap();
                let direct =
                    tokio::net::TcpStream::connect((PUBLIC, 80)).await.map(|_| ()).map_err(|error| error.kind());
                let through = Raw::ask(
                    "127.0.0.1:3128".parse().unwrap(),
                    "GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n",
                )
                .await;
                (direct, through)
            })
        });
        let listener = tokio::task::spawn_blocking(move || listener.recv().unwrap()).await.unwrap();
        let options = ProxyOptions { grant: grant(&["http://api.example"]), access: ProxyAccess::Open };
        let _proxy = world.egress.serve(listener_from_fd(listener).unwrap(), options).unwrap();
        give_proxy.send(()).unwrap();
        let (direct, through) = heard.await.unwrap();
        assert_eq!(direct, Err(std::io::ErrorKind::NetworkUnreachable));
        assert!(
            String::from_utf8_lossy(&through).contains(&format!("served by {PUBLIC}")),
            "{}",
            String::from_utf8_lossy(&through)
        );
    });
}

/// A name that was granted for TLS is not reached in the clear, and the other way round.
#[tokio::test]
async fn the_scheme_of_a_rule_counts_inside_a_tunnel() {
    let world = world().await;
    let port = world.servers.http.port();
    let proxy = world.proxy(local(&[&format!("http://api.example:{port}")])).await;
    let (mut raw, head) = Raw::tunnel(proxy.address(), &format!("api.example:{port}")).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    raw.say(client_hello("api.example")).await;
    assert_eq!(raw.rest().await, [21, 3, 1, 0, 2, 2, 49], "the client is told in its own language");
    assert_eq!(refusal_of(&world.record(1).await), Some(RefusalReason::SchemeNotGranted));
    assert!(world.servers.visits().await.is_empty());
}
