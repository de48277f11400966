//! WebSockets that are made to hurt. Each is told with a code why it is closed, and meanwhile everybody else is answered.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use palyra_common::RequestId;
use serde_json::{Value, json};

use crate::hostile::{peak, unharmed};
use crate::raw::loopback;
use crate::support::{Daemon, Place};

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const LAST: u8 = 0x80;
/// Larger than any message that is read.
const TOO_LARGE: usize = 9 * 1024 * 1024;

/// A WebSocket that sends exactly what it is told.
pub(crate) struct Socket(TcpStream);

impl Socket {
    pub(crate) fn open(daemon: &Daemon) -> Self {
        let mut stream = TcpStream::connect(daemon.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(handshake(daemon, &[]).as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        Self(stream)
    }

    /// A frame as a client has to send it. The mask is zero, so the bytes stay readable.
    fn send(&mut self, first: u8, payload: &[u8]) -> std::io::Result<()> {
        let mut frame = head(first, payload.len(), 0x80);
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(payload);
        self.0.write_all(&frame)
    }

    pub(crate) fn send_text(&mut self, text: &str) {
        self.send(LAST | TEXT, text.as_bytes()).unwrap();
    }

    /// The next frame of the daemon; `None` where the connection ends.
    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut start = [0; 2];
        self.0.read_exact(&mut start).ok()?;
        let length = match start[1] {
            126 => {
                let mut length = [0; 2];
                self.0.read_exact(&mut length).ok()?;
                usize::from(u16::from_be_bytes(length))
            }
            127 => {
                let mut length = [0; 8];
                self.0.read_exact(&mut length).ok()?;
                usize::try_from(u64::from_be_bytes(length)).unwrap()
            }
            length => usize::from(length),
        };
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).ok()?;
        Some((start[0] & 0x0f, payload))
    }

    /// The next message, past pings.
    pub(crate) fn message(&mut self) -> Option<Value> {
        loop {
            match self.frame()? {
                (TEXT, payload) => return Some(serde_json::from_slice(&payload).unwrap()),
                (PING | PONG, _) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The code with which the daemon closes.
    fn closed(&mut self) -> Option<u16> {
        loop {
            match self.frame()? {
                (CLOSE, payload) => return Some(u16::from_be_bytes([payload[0], payload[1]])),
                (PING | PONG | TEXT, _) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn handshake(daemon: &Daemon, more: &[(&str, &str)]) -> String {
    let (address, token) = (daemon.address(), daemon.token());
    let more: String = more.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "GET /acp/v1/ws HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

/// The head of a frame, whatever follows.
fn head(first: u8, length: usize, mask: u8) -> Vec<u8> {
    let mut head = vec![first];
    match length {
        0..126 => head.push(mask | u8::try_from(length).unwrap()),
        126..65536 => {
            head.push(mask | 126);
            head.extend_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
        }
        _ => {
            head.push(mask | 127);
            head.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    head
}

fn asked() -> String {
    json!({ "request_id": RequestId::generate(), "command": "principal.show" }).to_string()
}

/// A second socket is answered.
fn another_is_answered(daemon: &Daemon) {
    let mut other = Socket::open(daemon);
    other.send(LAST | TEXT, asked().as_bytes()).unwrap();
    assert_eq!(other.message().unwrap()["ok"], true);
}

#[tokio::test]
async fn a_goodbye_is_answered_with_its_own_code() {
    let place = Place::new();
    let daemon = place.start().await;
    for code in [1000_u16, 1001, 4000] {
        let mut socket = Socket::open(&daemon);
        socket.send(LAST | TEXT, asked().as_bytes()).unwrap();
        assert_eq!(socket.message().unwrap()["ok"], true);
        socket.send(LAST | CLOSE, &code.to_be_bytes()).unwrap();
        assert_eq!(socket.closed(), Some(code));
        assert_eq!(socket.frame(), None, "the daemon closes the connection");
    }
}

#[tokio::test]
async fn what_is_no_message_is_closed_with_a_code_that_says_why() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let unmasked = [head(LAST | TEXT, 2, 0), b"{}".to_vec()].concat();
    let huge = [head(LAST | TEXT, usize::MAX >> 1, 0x80), vec![0; 4]].concat();
    let large = [head(LAST | TEXT, TOO_LARGE, 0x80), vec![0; 4]].concat();
    let not_text = [head(LAST | TEXT, 2, 0x80), vec![0; 4], vec![0xff, 0xfe]].concat();
    let binary = [head(LAST | 2, 2, 0x80), vec![0; 4], vec![1, 2]].concat();
    let reserved_bits = [head(LAST | 0x70 | TEXT, 2, 0x80), vec![0; 4], b"{}".to_vec()].concat();
    let reserved_kind = [head(LAST | 7, 2, 0x80), vec![0; 4], b"{}".to_vec()].concat();
    let long_ping = [head(LAST | PING, 200, 0x80), vec![0; 204]].concat();
    let lonely = [head(LAST | CONTINUATION, 2, 0x80), vec![0; 4], b"{}".to_vec()].concat();
    for (name, bytes, code) in [
        ("unmasked", unmasked, 1002),
        ("huge", huge, 1009),
        ("too large", large, 1009),
        ("not text", not_text, 1007),
        ("binary", binary, 1003),
        ("reserved bits", reserved_bits, 1002),
        ("reserved kind", reserved_kind, 1002),
        ("a long ping", long_ping, 1002),
        ("a continuation of nothing", lonely, 1002),
        ("something else entirely", b"GET / HTTP/1.1\r\n\r\n".to_vec(), 1002),
    ] {
        let mut socket = Socket::open(&daemon);
        socket.0.write_all(&bytes).unwrap();
        assert_eq!(socket.closed(), Some(code), "{name}");
        another_is_answered(&daemon);
    }
    unharmed(&daemon, before).await;
}

#[tokio::test]
async fn fragments_without_end_are_cut_off_at_the_limit() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    // Many tiny ones: they are collected and are no message in the end.
    let mut socket = Socket::open(&daemon);
    let fragment = [head(CONTINUATION, 1, 0x80), vec![0; 4], b" ".to_vec()].concat();
    socket.send(TEXT, b"{").unwrap();
    socket.0.write_all(&fragment.repeat(100_000)).unwrap();
    another_is_answered(&daemon);
    socket.send(LAST | CONTINUATION, b"}").unwrap();
    assert_eq!(socket.message().unwrap()["error"]["code"], "request_invalid");
    socket.send(LAST | TEXT, asked().as_bytes()).unwrap();
    assert_eq!(socket.message().unwrap()["ok"], true, "its own socket goes on");
    // Large ones, which together are more than is read.
    let megabyte = vec![b' '; 1 << 20];
    socket.send(TEXT, b"{").unwrap();
    for _ in 0..TOO_LARGE >> 20 {
        // The daemon may have enough before it is all sent.
        let _ = socket.send(CONTINUATION, &megabyte);
    }
    assert!(matches!(socket.closed(), Some(1009) | None));
    another_is_answered(&daemon);
    unharmed(&daemon, before).await;
}

#[tokio::test]
async fn pings_and_commands_without_end_cost_their_sender_alone() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let mut pinging = Socket::open(&daemon);
    let ping = [head(LAST | PING, 100, 0x80), vec![0; 104]].concat();
    pinging.0.write_all(&ping.repeat(50_000)).unwrap();
    another_is_answered(&daemon);
    let mut answered = false;
    while let Some((kind, _)) = pinging.frame() {
        if kind == PONG {
            answered = true;
            break;
        }
    }
    assert!(answered, "no ping was answered");

    // Commands whose answers nobody takes: at some point the daemon reads no more of them.
    let mut asking = Socket::open(&daemon);
    asking.0.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = 0_u32;
    while sent < 200_000 && asking.send(LAST | TEXT, asked().as_bytes()).is_ok() {
        sent += 1;
    }
    assert!(sent < 200_000, "all {sent} commands were taken in although no answer was read");
    another_is_answered(&daemon);
    unharmed(&daemon, before).await;
}

#[tokio::test]
async fn half_a_handshake_and_half_a_connection_keep_nobody_waiting() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let whole = handshake(&daemon, &[]);
    let begun: Vec<_> = (0..100)
        .map(|number| {
            let mut stream = TcpStream::connect(daemon.address()).unwrap();
            stream.write_all(&whole.as_bytes()[..whole.len() * (number + 1) / 101]).unwrap();
            stream
        })
        .collect();
    // Open, and then nothing: no pong, no close. Some have begun a frame.
    let silent: Vec<_> = (0..100)
        .map(|number| {
            let mut socket = Socket::open(&daemon);
            if number % 2 == 0 {
                socket.0.write_all(&head(LAST | TEXT, 1000, 0x80)).unwrap();
            }
            socket
        })
        .collect();
    // They are asked whether they are still there.
    let mut one = silent.into_iter().next().unwrap();
    assert_eq!(one.frame().unwrap().0, PING);
    another_is_answered(&daemon);
    unharmed(&daemon, before).await;
    drop((begun, one));
}

#[tokio::test]
async fn pages_of_other_sites_open_no_socket() {
    let place = Place::new();
    let daemon = place.start().await;
    let (address, token) = (daemon.address(), format!("Bearer {}", daemon.token()));
    let port = address.rsplit(':').next().unwrap();
    let upgrade = |host: &str, origin: &str, path: &str| {
        let headers = [
            ("Host", host),
            ("Origin", origin),
            ("Authorization", token.as_str()),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        loopback(&daemon, &format!("GET {path}"), &headers).refusal()
    };
    for path in ["/acp/v1/ws", "/console/v1/ws"] {
        for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
            assert_eq!(upgrade(&address, origin, path), (403, "origin_refused".to_owned()), "{path} {origin}");
        }
        let evil = format!("evil.example:{port}");
        assert_eq!(upgrade(&evil, &format!("http://{evil}"), path), (403, "host_refused".to_owned()), "{path}");
    }
}
