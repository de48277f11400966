//! The client: redirects, content codings, the cache, what a page looks like when it arrives.

use std::sync::Arc;
use std::time::Duration;

use palyra_common::{FixedClock, Timestamp};
use palyra_egress::{
    CacheMode, Egress, EgressGrant, EgressOptions, FetchRequest, MemoryLog, NameServer, Served, readable,
};

use crate::harness::{World, grant};

async fn world() -> (World, String, EgressGrant) {
    let world = World::on_loopback().await;
    for name in ["local.example", "other.example"] {
        world.dns.set(name, &["127.0.0.1"]);
    }
    let port = world.servers.http.port();
    let base = format!("http://local.example:{port}");
    let grant = grant(&[&base, &format!("GET http://other.example:{port}")])
        .private_host("loopback:local.example")
        .unwrap()
        .private_host("loopback:other.example")
        .unwrap();
    (world, base, grant)
}

#[tokio::test]
async fn redirects_are_followed_and_checked() {
    let (world, base, grant) = world().await;
    let client = world.egress.client();
    let answer = client.send(&grant, FetchRequest::get(format!("{base}/redirect?/page"))).await.unwrap();
    assert_eq!((answer.status, answer.url.as_str()), (200, format!("{base}/page").as_str()));
    assert_eq!(answer.redirects, [format!("{base}/redirect?/page")]);
    assert_eq!(world.servers.visits().await.len(), 2);

    let error = client.send(&grant, FetchRequest::get(format!("{base}/loop"))).await.unwrap_err();
    assert_eq!(error.code(), "egress_too_many_redirects");
    assert_eq!(world.servers.visits().await.len(), 6, "the first and five more");

    let mut none = FetchRequest::get(format!("{base}/redirect?/page"));
    none.max_redirects = 0;
    assert_eq!(client.send(&grant, none).await.unwrap_err().code(), "egress_too_many_redirects");
    world.servers.visits().await;

    // A method that is not granted at the new address is refused there, although the old one allowed it.
    let other = base.replace("local", "other");
    let post = FetchRequest::new("POST", format!("{base}/again?{other}/")).body("data").header("authorization", "mine");
    assert_eq!(client.send(&grant, post).await.unwrap_err().code(), "egress_refused");
    assert_eq!(world.servers.visits().await.len(), 1);
    let post = FetchRequest::new("POST", format!("{base}/see-other?{other}/echo"))
        .body("data")
        .header("authorization", "mine")
        .header("x-api-key", "mine");
    let answer = client.send(&grant, post).await.unwrap();
    let echoed = String::from_utf8_lossy(&answer.body).to_ascii_lowercase();
    assert!(echoed.starts_with("get /echo") && !echoed.contains("mine") && !echoed.contains("data"), "{echoed}");
}

#[tokio::test]
async fn bodies_and_headers_arrive() {
    let (world, base, grant) = world().await;
    let client = world.egress.client();
    let request = FetchRequest::new("PUT", format!("{base}/echo?a=b"))
        .body("the body")
        .header("content-type", "text/plain")
        .header("x-mine", "1");
    let echoed = String::from_utf8(client.send(&grant, request).await.unwrap().body.to_vec()).unwrap();
    assert!(echoed.starts_with("PUT /echo?a=b HTTP/1.1\r\n") && echoed.ends_with("\r\n\r\nthe body"), "{echoed}");
    for line in [
        "content-length: 8",
        "content-type: text/plain",
        "x-mine: 1",
        "accept-encoding: gzip, deflate, br",
        "user-agent: palyra/",
    ] {
        assert!(echoed.to_ascii_lowercase().contains(line), "{line}: {echoed}");
    }
    let answer = client.send(&grant, FetchRequest::get(format!("{base}/gzip"))).await.unwrap();
    assert_eq!((&answer.body[..], answer.header("content-encoding")), (&b"unfolded"[..], None));
    let head = client.send(&grant, FetchRequest::new("HEAD", format!("{base}/"))).await.unwrap();
    assert_eq!((head.status, head.body.len()), (200, 0));
    for (name, value) in [
        ("Host", "evil.example"),
        ("Content-Length", "5"),
        ("Transfer-Encoding", "chunked"),
        ("bad name", "x"),
        ("x", "a\r\nb: c"),
        ("Proxy-Authorization", "x"),
    ] {
        let error = client.send(&grant, FetchRequest::get(&base).header(name, value)).await.unwrap_err();
        assert_eq!(error.code(), "egress_request_invalid", "{name}");
    }
    for method in ["CONNECT", "TRACE", "get", "G T", ""] {
        let error = client.send(&grant, FetchRequest::new(method, &base)).await.unwrap_err();
        assert_eq!(error.code(), "egress_request_invalid", "{method}");
    }
}

#[tokio::test]
async fn a_page_becomes_readable() {
    let (world, base, grant) = world().await;
    let answer = world.egress.client().send(&grant, FetchRequest::get(format!("{base}/page"))).await.unwrap();
    let page = readable(answer.content_type(), &answer.body, &answer.url, &tokio_util::sync::CancellationToken::new())
        .unwrap();
    assert_eq!(page.title.as_deref(), Some("Page"));
    assert_eq!(page.text, format!("Hello [wörld]({base}/next)"));
}

#[tokio::test]
async fn the_cache_answers_when_it_may() {
    let (world, base, grant) = world().await;
    let clock = FixedClock::at(Timestamp(1_000_000));
    let log = Arc::new(MemoryLog::default());
    let egress = Egress::new(EgressOptions {
        resolver: Arc::new(NameServer::new(world.dns.address())),
        log: Arc::clone(&log) as _,
        clock: Arc::new(clock.clone()),
        ..EgressOptions::default()
    })
    .unwrap();
    let client = egress.client();
    let fetch = async |path: &str, mode: CacheMode| {
        let mut request = FetchRequest::get(format!("{base}{path}"));
        request.cache = mode;
        let answer = client.send(&grant, request).await.unwrap();
        (answer.served, String::from_utf8(answer.body.to_vec()).unwrap(), world.servers.visits().await.len())
    };
    use CacheMode::{Bypass, Use};
    assert_eq!(fetch("/fresh", Use).await, (Served::Network, "kept".into(), 1));
    assert_eq!(fetch("/fresh", Use).await, (Served::Cache, "kept".into(), 0));
    assert_eq!(fetch("/fresh", Bypass).await, (Served::Network, "kept".into(), 1));
    clock.advance(Duration::from_secs(61));
    assert_eq!(fetch("/fresh", Use).await, (Served::Network, "kept".into(), 1));
    assert_eq!(fetch("/etag", Use).await, (Served::Network, "validated".into(), 1));
    assert_eq!(fetch("/etag", Use).await, (Served::Revalidated, "validated".into(), 1));
    assert_eq!(fetch("/", Use).await.0, Served::Network);
    assert_eq!(
        fetch("/", Use).await,
        (Served::Network, "served by 127.0.0.1".into(), 1),
        "nothing said that it may be kept"
    );
    assert_eq!(log.records().len(), 8, "an answer from the cache is recorded too");
    // Another grant does not see what this one fetched.
    let mut stranger = EgressGrant::new("stranger");
    assert_eq!(
        client.send(&stranger, FetchRequest::get(format!("{base}/fresh"))).await.unwrap_err().code(),
        "egress_refused"
    );
    // Not even with the same rules, if the name leads it to an address that it may not reach.
    stranger.rules = grant.rules.clone();
    let error = client.send(&stranger, FetchRequest::get(format!("{base}/fresh"))).await.unwrap_err();
    assert_eq!(error.code(), "egress_refused", "{error}");
}
