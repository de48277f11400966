//! Readers that stop reading hold little, whatever they speak, and what they held goes back to the system.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use h2::RecvStream;
use h2::client::SendRequest;
use palyra_common::RequestId;
use serde_json::json;
use tokio::net::TcpSocket;

use crate::hostile::peak;
use crate::hostile_socket::Socket;
use crate::support::{Daemon, Place};

const SOCKETS: usize = 100;
const STREAMS: usize = 8;
/// What all of them may hold: far less than a page for each stream.
pub(crate) const MOST_HELD: u64 = 160 * 1024 * 1024;

/// The same over HTTP/1.1, where each connection carries one stream, and over HTTP/2, where it carries many.
const CONNECTIONS: usize = 200;
const MULTIPLEXED: usize = 20;
const CARRIED: usize = 100;
/// More than one principal has pages for.
const STOPPED: usize = 100;
const EXPORT: &str = "/api/v1/journal/export";

fn resident(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

/// A journal that is much longer than what a connection takes into its buffers.
async fn long_journal(daemon: &Daemon) {
    for number in 0..16 {
        let run = daemon.create(&format!("list the files {number} {}", "x".repeat(400_000))).await;
        daemon.follow(run.run_id, 1).await;
    }
}

fn open_streams(daemon: &Daemon) -> Socket {
    let mut socket = Socket::open(daemon);
    for _ in 0..STREAMS {
        let command = json!({ "request_id": RequestId::generate(), "command": "journal.export", "params": {} });
        socket.send_text(&command.to_string());
    }
    socket
}

#[tokio::test]
async fn stopped_readers_hold_little_and_their_memory_comes_back() {
    let place = Place::new();
    let daemon = place.start().await;
    long_journal(&daemon).await;
    drop(open_streams(&daemon));
    tokio::time::sleep(Duration::from_secs(6)).await;
    let (idle, before) = (resident(&daemon), peak(&daemon));

    let sockets: Vec<_> = (0..SOCKETS).map(|_| open_streams(&daemon)).collect();
    // Longer than the daemon waits between two looks at its memory: what is freed after a look at the peak has to be returned too.
    tokio::time::sleep(Duration::from_secs(11)).await;
    let held = peak(&daemon).saturating_sub(before);
    assert!(held < MOST_HELD, "stopped readers hold {held} bytes");
    assert!(daemon.client.health().await.is_ok());
    drop(sockets);

    let start = Instant::now();
    while resident(&daemon) > idle + idle / 2 {
        assert!(start.elapsed() < Duration::from_secs(30), "{} of {idle} bytes are kept", resident(&daemon));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_stopped_reader_of_one_stream_does_not_end_the_others_of_its_principal() {
    let place = Place::new();
    let daemon = place.start().await;
    long_journal(&daemon).await;
    let _stopped: Vec<_> = (0..40).map(|_| open_streams(&daemon)).collect();
    // All pages of the owner are held; whoever reads gets them once those who do not are closed.
    let mut reader = Socket::open(&daemon);
    let command = json!({ "request_id": RequestId::generate(), "command": "journal.tail", "params": { "n": 5 } });
    reader.send_text(&command.to_string());
    let mut documents = 0;
    while let Some(message) = reader.message() {
        if message.get("document").is_none() {
            break;
        }
        documents += 1;
    }
    assert_eq!(documents, 5);
}

/// A request for the journal whose answer is not read.
fn unread(daemon: &Daemon) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(daemon.address()).unwrap();
    let (host, token) = (daemon.address(), daemon.token());
    write!(stream, "GET {EXPORT} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();
    stream
}

/// A connection of HTTP/2 over which little fits that is not read.
async fn multiplexed(daemon: &Daemon) -> SendRequest<bytes::Bytes> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(32 * 1024).unwrap();
    let address: SocketAddr = daemon.address().parse().unwrap();
    let (client, connection) = h2::client::handshake(socket.connect(address).await.unwrap()).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Asks for documents over a connection that carries other streams, too. The daemon may close it at any time.
async fn ask(daemon: &Daemon, client: &mut SendRequest<bytes::Bytes>, path: &str) -> Result<RecvStream, h2::Error> {
    let request = http::Request::get(format!("http://{}{path}", daemon.address()))
        .header("authorization", format!("Bearer {}", daemon.token()));
    let (answer, _) = client.clone().ready().await?.send_request(request.body(()).unwrap(), true)?;
    let answer = answer.await?;
    assert_eq!(answer.status(), 200);
    Ok(answer.into_body())
}

#[tokio::test]
async fn stopped_readers_of_http_hold_little() {
    let place = Place::new();
    let daemon = place.start().await;
    long_journal(&daemon).await;
    let before = peak(&daemon);
    let _unread: Vec<_> = (0..CONNECTIONS).map(|_| unread(&daemon)).collect();
    let (mut clients, mut streams) = (Vec::new(), Vec::new());
    for _ in 0..MULTIPLEXED {
        let mut client = multiplexed(&daemon).await;
        for _ in 0..CARRIED {
            let Ok(stream) = ask(&daemon, &mut client, EXPORT).await else { break };
            streams.push(stream);
        }
        clients.push(client);
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let held = peak(&daemon).saturating_sub(before);
    assert!(held < MOST_HELD, "stopped readers hold {held} bytes");
    assert!(streams.len() > CARRIED, "{} streams were opened", streams.len());
    assert!(daemon.client.health().await.is_ok());
}

/// Somebody who reads gets what they asked for, although others of the same principal hold all that it may.
#[tokio::test]
async fn a_reader_of_http_is_answered_beside_stopped_ones() {
    let place = Place::new();
    let daemon = place.start().await;
    long_journal(&daemon).await;
    let _unread: Vec<_> = (0..STOPPED).map(|_| unread(&daemon)).collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut reader = multiplexed(&daemon).await;
    let mut body = ask(&daemon, &mut reader, "/api/v1/journal/tail?n=5").await.unwrap();
    let mut read = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        read.extend_from_slice(&piece);
    }
    let documents = read.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    assert_eq!(documents, 5, "{}", String::from_utf8_lossy(&read));
}
