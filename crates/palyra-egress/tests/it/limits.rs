//! Limits: bytes both ways, time, silence, connections at once, heads.

use palyra_egress::{ConnectionVerdict, EgressGrant, FetchRequest};

use crate::harness::{Raw, World, grant, status_of};

async fn world() -> (World, String) {
    let world = World::on_loopback().await;
    world.dns.set("local.example", &["127.0.0.1"]);
    let base = format!("http://local.example:{}", world.servers.http.port());
    (world, base)
}

fn limited(base: &str, change: impl FnOnce(&mut palyra_egress::EgressLimits)) -> EgressGrant {
    let mut grant = grant(&[base]).private_host("loopback:local.example").unwrap();
    change(&mut grant.limits);
    grant
}

fn get(base: &str, path: &str) -> String {
    format!("GET {base}{path} HTTP/1.1\r\nHost: {}\r\n\r\n", base.trim_start_matches("http://"))
}

async fn failed_with(world: &World, count: usize) -> &'static str {
    match world.record(count).await.verdict {
        ConnectionVerdict::Failed { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn bytes_from_the_host_end_at_the_limit() {
    let (world, base) = world().await;
    let grant = limited(&base, |limits| limits.download_bytes = 100_000);
    let client = world.egress.client();
    assert_eq!(client.send(&grant, FetchRequest::get(format!("{base}/big?100000"))).await.unwrap().body.len(), 100_000);
    for path in ["/big?100001", "/endless", "/bomb"] {
        let error = client.send(&grant, FetchRequest::get(format!("{base}{path}"))).await.unwrap_err();
        assert_eq!(error.code(), "egress_too_large", "{path}");
    }
    // The length of what a `HEAD` does not send is no reason to refuse it.
    assert_eq!(client.send(&grant, FetchRequest::new("HEAD", format!("{base}/big?100001"))).await.unwrap().status, 200);
    let proxy = world.proxy(grant).await;
    let announced = Raw::ask(proxy.address(), get(&base, "/big?100001")).await;
    assert_eq!(status_of(&announced), 502, "an announced length is refused before a byte is passed on");
    let endless = Raw::ask(proxy.address(), get(&base, "/endless")).await;
    assert!(endless.len() <= 200_000, "{}", endless.len());
    assert!(!endless.ends_with(b"0\r\n\r\n"), "a cut answer does not look complete");
    // The client's five, then the proxy's two.
    assert_eq!(failed_with(&world, 7).await, "egress_too_large");
    let record = world.record(7).await;
    assert!(record.bytes_down <= 100_000);
}

#[tokio::test]
async fn bytes_to_the_host_end_at_the_limit() {
    let (world, base) = world().await;
    let grant = limited(&base, |limits| limits.upload_bytes = 1000);
    let error = world
        .egress
        .client()
        .send(&grant, FetchRequest::new("POST", format!("{base}/echo")).body(vec![b'x'; 1001]))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "egress_too_large");
    let proxy = world.proxy(grant).await;
    let host = base.trim_start_matches("http://");
    let chunk = format!("{:x}\r\n{}\r\n", 600, "x".repeat(600));
    let request = format!(
        "POST {base}/echo HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n"
    );
    let heard = Raw::ask(proxy.address(), request).await;
    assert_eq!(status_of(&heard), 413, "{}", String::from_utf8_lossy(&heard));
    assert!(world.servers.visits().await.iter().all(|visit| visit.bytes < 1200));
}

#[tokio::test]
async fn a_tunnel_has_the_same_limits() {
    let (world, _) = world().await;
    let port = world.servers.https.port();
    let mut grant = grant(&[&format!("https://local.example:{port}")]).private_host("loopback:local.example").unwrap();
    grant.limits.download_bytes = 50_000;
    let proxy = world.proxy(grant).await;
    world.dns.set("local.example", &["127.0.0.1"]);
    let (raw, head) = Raw::tunnel(proxy.address(), &format!("local.example:{port}")).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // The server has no certificate for this name, and the test does not mind: the greeting names it, and bytes are counted anyway.
    let _ = raw.ask_inside(&world.authority.pem(), "local.example", "").await;
    let record = world.record(1).await;
    assert!(record.bytes_down > 0 && record.bytes_down <= 50_000, "{record:?}");
}

#[tokio::test]
async fn silence_and_time_run_out() {
    let (world, base) = world().await;
    let client = world.egress.client();
    let quick = limited(&base, |limits| limits.time_ms = 400);
    for path in ["/silence", "/trickle"] {
        let error = client.send(&quick, FetchRequest::get(format!("{base}{path}"))).await.unwrap_err();
        assert_eq!(error.code(), "egress_timed_out", "{path}");
    }
    let proxy = world.proxy(limited(&base, |limits| limits.time_ms = 400)).await;
    let heard = Raw::ask(proxy.address(), get(&base, "/silence")).await;
    assert_eq!(status_of(&heard), 504);
    let mut raw = Raw::connect(proxy.address()).await;
    raw.say(get(&base, "/trickle")).await;
    let heard = raw.rest().await;
    assert!(status_of(&heard) == 200 && !heard.ends_with(b"0\r\n\r\n"), "cut, and visibly so");
}

/// A client that sends its body a byte at a time, or never takes what it asked for, does not hold a connection for long.
#[tokio::test]
async fn slow_clients_are_let_go() {
    let (world, base) = world().await;
    let proxy = world.proxy(limited(&base, |limits| limits.idle_ms = 400)).await;
    let host = base.trim_start_matches("http://");
    let mut sender = Raw::connect(proxy.address()).await;
    sender.say(format!("POST {base}/echo HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\nx")).await;
    assert_eq!(status_of(&sender.rest().await), 504);
    assert_eq!(failed_with(&world, 1).await, "egress_timed_out");
    let mut taker = Raw::connect(proxy.address()).await;
    taker.say(get(&base, "/endless")).await;
    // Nothing is read: the buffers between fill up, and the record is written when the proxy gives up.
    let record = world.record(2).await;
    assert!(record.bytes_down > 0, "{record:?}");
}

#[tokio::test]
async fn connections_at_once_are_counted() {
    let (world, base) = world().await;
    let proxy = world.proxy(limited(&base, |limits| limits.concurrent = 2)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut raw = Raw::connect(proxy.address()).await;
        raw.say(get(&base, "/trickle")).await;
        assert!(raw.head().await.starts_with("HTTP/1.1 200"));
        held.push(raw);
    }
    let heard = Raw::ask(proxy.address(), get(&base, "/")).await;
    assert_eq!(status_of(&heard), 503, "{}", String::from_utf8_lossy(&heard));
    assert!(String::from_utf8_lossy(&heard).contains("egress_busy"));
    held.clear();
    // The places come free when the proxy has noticed; it tells how long that took by refusing until then.
    let mut status = 503;
    for _ in 0..200 {
        status = status_of(&Raw::ask(proxy.address(), get(&base, "/")).await);
        if status == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(status, 200);
}

#[tokio::test]
async fn many_at_once_are_all_served() {
    let (world, base) = world().await;
    let proxy = world.proxy(limited(&base, |limits| limits.concurrent = 64)).await;
    let (address, request) = (proxy.address(), get(&base, "/big?10000"));
    let tasks: Vec<_> = (0..64).map(|_| tokio::spawn(Raw::ask(address, request.clone()))).collect();
    for task in tasks {
        assert_eq!(status_of(&task.await.unwrap()), 200);
    }
    assert_eq!(world.servers.visits().await.len(), 64);
}

#[tokio::test]
async fn heads_of_answers_are_limited() {
    let (world, base) = world().await;
    let grant = limited(&base, |limits| limits.header_bytes = 16 << 10);
    let error = world.egress.client().send(&grant, FetchRequest::get(format!("{base}/huge-head"))).await.unwrap_err();
    assert_eq!(error.code(), "egress_protocol_failed", "{error}");
}
