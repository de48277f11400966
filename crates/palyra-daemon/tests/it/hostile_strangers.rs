//! Strangers who begin requests that anybody may make, and never end them: each costs little, and there are few on a connection.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, Request};
use tokio::net::TcpStream;

use crate::support::{Daemon, Place};

/// Requests begun on one connection, of which 16 may be under way.
const BEGUN: usize = 40;
const UNDER_WAY: usize = 16;
/// Within the time for a body, which is 30 s.
const AT_ONCE: Duration = Duration::from_secs(15);

/// Sends the beginning of a request and reads the first line of what comes.
fn first_line(daemon: &Daemon, head: &str, body: &[u8]) -> String {
    let mut stream = std::net::TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(AT_ONCE)).unwrap();
    let head = format!("{head} HTTP/1.1\r\nHost: {}\r\n", daemon.address());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).unwrap();
    String::from_utf8_lossy(&line).into_owned()
}

#[tokio::test]
async fn no_more_of_a_strangers_body_is_read_than_is_needed() {
    let place = Place::new();
    let daemon = place.start().await;
    let login = "POST /console/v1/login";
    let announced = [b"Content-Length: 5000000\r\n\r\n".as_slice(), &[b' '; 5000]].concat();
    assert_eq!(first_line(&daemon, login, &announced), "HTTP/1.1 413");
    // Whoever does not say how much there is gets no further.
    let mut pieces = b"Transfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..5 {
        pieces.extend_from_slice(b"400\r\n");
        pieces.extend_from_slice(&[b' '; 0x400]);
        pieces.extend_from_slice(b"\r\n");
    }
    assert_eq!(first_line(&daemon, login, &pieces), "HTTP/1.1 413");
    // A link that is unknown is told so before its form has arrived.
    let form = format!("POST /canvas/v1/{}/actions", "A".repeat(43));
    assert_eq!(first_line(&daemon, &form, b"Content-Length: 5000\r\n\r\nv.name="), "HTTP/1.1 404");
}

async fn connected(address: &str) -> SendRequest<Bytes> {
    let socket = TcpStream::connect(address).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Whether a request's body is all there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Part,
    All,
}

/// Begins a request; its answer, and what keeps it open.
async fn begin(
    client: &SendRequest<Bytes>,
    request: http::request::Builder,
    body: &'static [u8],
    said: Said,
) -> (ResponseFuture, h2::SendStream<Bytes>) {
    let mut ready = client.clone().ready().await.unwrap();
    let (answer, mut up) = ready.send_request(request.body(()).unwrap(), false).unwrap();
    up.send_data(Bytes::from_static(body), said == Said::All).unwrap();
    (answer, up)
}

/// The heads of so many that are answered. What was answered with a stream stays open meanwhile.
async fn answered(begun: Vec<(ResponseFuture, h2::SendStream<Bytes>)>, wanted: usize) -> Vec<(u16, HeaderMap)> {
    let mut waiting: futures::stream::FuturesUnordered<_> = begun
        .into_iter()
        .map(async |(answer, up)| {
            let (head, body) = answer.await.unwrap().into_parts();
            (head.status.as_u16(), head.headers, (up, body))
        })
        .collect();
    let (start, mut heads, mut open) = (Instant::now(), Vec::new(), Vec::new());
    while heads.len() < wanted {
        let left = AT_ONCE.saturating_sub(start.elapsed());
        match tokio::time::timeout(left, futures::StreamExt::next(&mut waiting)).await {
            Ok(Some((status, headers, streams))) => {
                heads.push((status, headers));
                open.push(streams);
            }
            Ok(None) | Err(_) => break,
        }
    }
    heads
}

#[tokio::test]
async fn few_requests_of_strangers_are_under_way_on_one_connection() {
    let place = Place::new();
    let daemon = place.start().await;
    let client = connected(&daemon.address()).await;
    let address = daemon.address();
    let mut begun = Vec::new();
    for _ in 0..BEGUN {
        let request = Request::post(format!("http://{address}/console/v1/login"));
        begun.push(begin(&client, request, b"{", Said::Part).await);
    }
    let heads = answered(begun, BEGUN - UNDER_WAY).await;
    assert_eq!(heads.len(), BEGUN - UNDER_WAY);
    assert!(heads.iter().all(|(status, _)| *status == 503), "{heads:?}");
    // With a credential the same connection serves on.
    let request = Request::get(format!("http://{address}/api/v1/principal"))
        .header("authorization", format!("Bearer {}", daemon.token()));
    let (answer, _) = client.clone().ready().await.unwrap().send_request(request.body(()).unwrap(), true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 200);
}

#[tokio::test]
async fn few_strangers_watch_health_on_one_connection() {
    let place = Place::new();
    let daemon = place.start().await;
    let address = std::fs::read_to_string(daemon.state_root.join("grpc.addr")).unwrap();
    let client = connected(address.trim()).await;
    let mut begun = Vec::new();
    for _ in 0..BEGUN {
        let request = Request::post(format!("http://{}/grpc.health.v1.Health/Watch", address.trim()))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        begun.push(begin(&client, request, b"\0\0\0\0\0", Said::All).await);
    }
    let heads = answered(begun, BEGUN).await;
    assert_eq!(heads.len(), BEGUN);
    // The status comes with the head where there is no stream.
    let refused = heads.iter().filter(|(_, headers)| headers.contains_key("grpc-status")).count();
    assert_eq!(refused, BEGUN - UNDER_WAY, "{heads:?}");
}
