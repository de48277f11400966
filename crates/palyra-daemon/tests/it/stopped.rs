//! Readers that stop reading, one kind of answer after the other: each asks for far more than a connection may hold, says that it has room for all of it, and takes
//! nothing off the wire.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::client::{ResponseFuture, SendRequest};
use palyra_common::RunId;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::run_stream_request::Body as Up;
use prost::Message;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};

use crate::hostile::peak;
use crate::memory::MOST_HELD;
use crate::raw::unix;
use crate::support::{Daemon, Place};

const CONNECTIONS: usize = 12;
/// The daemon allows a few more on one connection.
const STREAMS: usize = 100;
/// What each of them asks for. All together that is more than a gigabyte.
const ANSWER: usize = 1 << 20;
/// An event that fits into what is kept for a stream of HTTP/2 until it was sent, but not into a page.
const EVENT: usize = 300_000;
/// More than the system keeps for a connection.
const LARGE: usize = 7 << 20;
/// What may be held while documents are read: until it is written, a document takes several times its bytes.
const MOST_READ: u64 = 400 * 1024 * 1024;
/// As much as the protocol can say.
const WINDOW: u32 = (1 << 31) - 1;

/// A connection from which nothing is ever read.
struct WriteOnly(TcpStream);

impl AsyncRead for WriteOnly {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for WriteOnly {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Whether a client has said all that it has to say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Part,
    All,
}

/// A client of HTTP/2 that takes nothing. It gives up when it is dropped.
struct Stopped {
    client: SendRequest<Bytes>,
    asked: Vec<(ResponseFuture, SendStream<Bytes>)>,
    connection: tokio::task::JoinHandle<()>,
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Stopped {
    async fn at(address: &str) -> Self {
        let stream = connected(address).await;
        let (client, connection) = h2::client::Builder::new()
            .initial_max_send_streams(STREAMS)
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(WriteOnly(stream))
            .await
            .unwrap();
        let connection = tokio::spawn(async move {
            let _ = connection.await;
        });
        Self { client, asked: Vec::new(), connection }
    }

    fn ask(&mut self, request: http::request::Builder, body: Option<Vec<u8>>, said: Said) {
        let request = request.body(()).unwrap();
        let (answer, mut up) = self.client.send_request(request, body.is_none()).unwrap();
        if let Some(body) = body {
            up.send_data(body.into(), said == Said::All).unwrap();
        }
        self.asked.push((answer, up));
    }
}

/// A connection for which the system keeps little.
async fn connected(address: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    socket.connect(address.parse::<SocketAddr>().unwrap()).await.unwrap()
}

/// One run whose task has so many bytes; its details and its tape have at least as many.
async fn long_run(daemon: &Daemon, bytes: usize) -> RunId {
    let run = daemon.create(&format!("list the files {}", "x".repeat(bytes))).await;
    daemon.follow(run.run_id, 1).await;
    run.run_id
}

/// A model that says so much at once.
fn talkative(bytes: usize) -> Place {
    Place::new().with_script(&format!("[[turn]]\ntext = [\"{}\"]\n", "x".repeat(bytes)))
}

/// Where the first of some documents is that has so many bytes.
fn position(documents: impl Iterator<Item = String>, bytes: usize) -> u64 {
    let mut large = documents.filter(|document| document.len() >= bytes);
    serde_json::from_str::<Value>(&large.next().unwrap()).unwrap()["seq"].as_u64().unwrap()
}

/// What the daemon holds at most while each client has asked for all that it wants.
async fn held(daemon: &Daemon, address: &str, ask: impl Fn(&mut Stopped)) -> u64 {
    let before = peak(daemon);
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = Stopped::at(address).await;
        for _ in 0..STREAMS {
            ask(&mut client);
        }
        clients.push(client);
    }
    tokio::time::sleep(Duration::from_secs(6)).await;
    let held = peak(daemon).saturating_sub(before);
    assert!(daemon.client.health().await.is_ok());
    held
}

async fn held_over_http(daemon: &Daemon, path: &str) -> u64 {
    let (host, bearer) = (daemon.address(), format!("Bearer {}", daemon.token()));
    let ask = |client: &mut Stopped| {
        let request = http::Request::get(format!("http://{host}{path}")).header("authorization", &bearer);
        client.ask(request, None, Said::All);
    };
    held(daemon, &host, ask).await
}

async fn held_over_grpc(daemon: &Daemon, method: &str, message: &impl Message, said: Said) -> u64 {
    let address = std::fs::read_to_string(daemon.state_root.join("grpc.addr")).unwrap().trim().to_owned();
    let bearer = format!("Bearer {}", daemon.token());
    let message = message.encode_to_vec();
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend_from_slice(&message);
    let ask = |client: &mut Stopped| {
        let request = http::Request::post(format!("http://{address}/palyra.gateway.v1.GatewayService/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("authorization", &bearer);
        client.ask(request, Some(framed.clone()), said);
    };
    held(daemon, &address, ask).await
}

#[tokio::test]
async fn answers_of_commands_that_nobody_takes_hold_little() {
    let place = Place::new();
    let daemon = place.start().await;
    let run_id = long_run(&daemon, ANSWER).await;
    let held = held_over_http(&daemon, &format!("/api/v1/runs/{run_id}")).await;
    assert!(held < MOST_HELD, "answers that nobody takes hold {held} bytes");
}

#[tokio::test]
async fn streams_of_grpc_that_nobody_takes_hold_little() {
    let place = talkative(EVENT);
    let daemon = place.start().await;
    let run_id = long_run(&daemon, 1).await.to_string();
    let resume = Up::Resume(wire::ResumeRun { run_id, from_seq: 1, progress: false });
    let first = wire::RunStreamRequest { request_id: String::new(), body: Some(resume) };
    let held = held_over_grpc(&daemon, "RunStream", &first, Said::Part).await;
    assert!(held < MOST_READ, "streams that nobody takes hold {held} bytes");
}

#[tokio::test]
async fn answers_over_grpc_that_nobody_takes_hold_little() {
    let place = Place::new();
    let daemon = place.start().await;
    let run_id = long_run(&daemon, ANSWER).await.to_string();
    let held = held_over_grpc(&daemon, "GetRun", &wire::GetRunRequest { run_id }, Said::All).await;
    assert!(held < MOST_HELD, "answers that nobody takes hold {held} bytes");
}

/// A page has one document at least, however large that is.
#[tokio::test]
async fn a_document_that_is_larger_than_a_page_counts_whole() {
    let place = Place::new();
    let daemon = place.start().await;
    long_run(&daemon, LARGE).await;
    let exported = unix(&daemon, "GET /api/v1/journal/export", b"").body;
    let from = position(exported.lines().map(str::to_owned), LARGE);
    drop(exported);
    let before = peak(&daemon);
    let (host, token) = (daemon.address(), daemon.token());
    let mut unread = Vec::new();
    for _ in 0..200 {
        let mut stream = connected(&host).await;
        let path = format!("/api/v1/journal/export?from_seq={from}");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        unread.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(6)).await;
    let held = peak(&daemon).saturating_sub(before);
    assert!(held < MOST_READ, "large documents that nobody takes hold {held} bytes");
}
