//! gRPC that is made to hurt: frames of HTTP/2 as no library would send them, and messages that are none.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use palyra_proto::error_from_status;
use palyra_proto::gateway::v1 as wire;
use prost::Message as _;
use tonic::{Code, Status};

use crate::grpc::support::{Grpc, grpc_address};
use crate::hostile::{peak, unharmed};
use crate::support::{Daemon, Place};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const LIST_RUNS: &str = "/palyra.gateway.v1.GatewayService/ListRuns";

/// A connection of HTTP/2 that sends exactly what it is told.
struct Http2(TcpStream);

impl Http2 {
    fn open(daemon: &Daemon) -> Self {
        let stream = TcpStream::connect(grpc_address(daemon)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut connection = Self(stream);
        connection.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        connection.send(SETTINGS, 0, 0, b"").unwrap();
        connection
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> std::io::Result<()> {
        self.0.write_all(&frame(kind, flags, stream, payload))
    }

    /// The next frame: its kind, its flags, its stream, what it holds. `None` where the connection ends.
    fn frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        Some((head[3], head[4], stream, payload))
    }

    /// Reads until the connection ends, and gives the code of its goodbye if there was one.
    fn goodbye(&mut self) -> Option<u32> {
        let mut code = None;
        while let Some((kind, _, _, payload)) = self.frame() {
            if kind == GOAWAY {
                code = Some(u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]));
            }
        }
        code
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A block of headers, none of them compressed.
fn block(daemon: &Daemon, path: &str, more: &[(&str, &[u8])]) -> Vec<u8> {
    // `:method: POST` and `:scheme: http` by their numbers in the table of the protocol.
    let mut block = vec![0x83, 0x86];
    let (authority, token) = (grpc_address(daemon), format!("Bearer {}", daemon.token()));
    let mut all: Vec<(&str, &[u8])> = vec![
        (":path", path.as_bytes()),
        (":authority", authority.as_bytes()),
        ("content-type", b"application/grpc"),
        ("te", b"trailers"),
    ];
    if !more.iter().any(|(name, _)| *name == "authorization") {
        all.push(("authorization", token.as_bytes()));
    }
    all.extend_from_slice(more);
    for (name, value) in all {
        block.push(0);
        text(name.as_bytes(), &mut block);
        text(value, &mut block);
    }
    block
}

/// A text of HPACK as it is.
fn text(bytes: &[u8], into: &mut Vec<u8>) {
    if bytes.len() < 127 {
        into.push(u8::try_from(bytes.len()).unwrap());
    } else {
        into.push(127);
        let mut rest = bytes.len() - 127;
        while rest >= 128 {
            into.push(u8::try_from(rest % 128).unwrap() | 128);
            rest /= 128;
        }
        into.push(u8::try_from(rest).unwrap());
    }
    into.extend_from_slice(bytes);
}

async fn another_is_answered(daemon: &Daemon) {
    let mut other = Grpc::of(daemon).await;
    let asked = other.gateway.list_runs(wire::ListRunsRequest::default());
    tokio::time::timeout(Duration::from_secs(20), asked).await.expect("nobody is answered").unwrap();
}

/// Sends one call as it is, over a library that does not look at it, and gives the status.
async fn called(daemon: &Daemon, path: &str, headers: &[(&str, &[u8])], body: &[u8]) -> Status {
    let socket = tokio::net::TcpStream::connect(grpc_address(daemon)).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    let driver = tokio::spawn(connection);
    let mut request = http::Request::post(format!("http://{}{path}", grpc_address(daemon)))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    if !headers.iter().any(|(name, _)| *name == "authorization") {
        request = request.header("authorization", format!("Bearer {}", daemon.token()));
    }
    for (name, value) in headers {
        request = request.header(*name, http::HeaderValue::from_bytes(value).unwrap());
    }
    let mut client = client.ready().await.unwrap();
    let (response, mut up) = client.send_request(request.body(()).unwrap(), false).unwrap();
    // It may be refused before it has said everything.
    let _ = up.send_data(bytes::Bytes::copy_from_slice(body), true);
    let answered = async {
        let response = response.await.unwrap();
        if let Some(status) = Status::from_header_map(response.headers()) {
            return status;
        }
        let mut body = response.into_body();
        while let Some(data) = body.data().await {
            let length = data.unwrap().len();
            let _ = body.flow_control().release_capacity(length);
        }
        Status::from_header_map(&body.trailers().await.unwrap().unwrap()).unwrap()
    };
    let status = tokio::time::timeout(Duration::from_secs(20), answered).await.expect("no answer");
    driver.abort();
    status
}

#[tokio::test]
async fn messages_that_are_none_are_refused_one_by_one() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let packed = [("grpc-encoding", &b"gzip"[..])];
    let too_late = [("grpc-timeout", &b"0n"[..])];
    let no_text = [("authorization", &b"Bearer \xff\xfe"[..])];
    let harmless = [("x-something", &b"\xff\xfe"[..])];
    type Headers<'a> = &'a [(&'a str, &'a [u8])];
    let cases: [(&str, Headers<'_>, &[u8], Code, &str); 8] = [
        // Four gigabytes are announced; nothing is kept for them.
        ("huge", &[], b"\x00\xff\xff\xff\xff", Code::ResourceExhausted, "body_too_large"),
        ("packed", &packed, b"\x01\x00\x00\x00\x04xxxx", Code::Unimplemented, "unsupported_rpc"),
        (
            "packed in no way that was named",
            &[],
            b"\x01\x00\x00\x00\x04xxxx",
            Code::InvalidArgument,
            "proto_message_invalid",
        ),
        ("no flag", &[], b"\x07\x00\x00\x00\x00", Code::InvalidArgument, "proto_message_invalid"),
        ("no message", &[], b"\x00\x00\x00\x00\x04\xff\xff\xff\xff", Code::InvalidArgument, "proto_message_invalid"),
        // The session's id is a text.
        ("no text", &[], b"\x00\x00\x00\x00\x04\x0a\x02\xff\xfe", Code::InvalidArgument, "proto_message_invalid"),
        ("no time", &too_late, b"\x00\x00\x00\x00\x00", Code::DeadlineExceeded, "deadline_exceeded"),
        ("no credential", &no_text, b"\x00\x00\x00\x00\x00", Code::Unauthenticated, "token_refused"),
    ];
    for (name, headers, body, code, expected) in cases {
        let status = called(&daemon, LIST_RUNS, headers, body).await;
        assert_eq!((status.code(), error_from_status(&status).code.as_str()), (code, expected), "{name}: {status:?}");
    }
    assert_eq!(called(&daemon, LIST_RUNS, &harmless, b"\x00\x00\x00\x00\x00").await.code(), Code::Ok);
    unharmed(&daemon, before).await;
}

/// Whoever has no time left gets nothing done, either.
#[tokio::test]
async fn a_deadline_that_has_passed_begins_nothing() {
    let place = Place::new();
    let daemon = place.start().await;
    use wire::resolve_session_request::By;
    const RESOLVE: &str = "/palyra.gateway.v1.GatewayService/ResolveSession";
    let message =
        wire::ResolveSessionRequest { by: Some(By::SessionKey("mine".to_owned())), title: None }.encode_to_vec();
    let body = [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes(), &message].concat();
    for (timeout, code, made) in [("0n", Code::DeadlineExceeded, 0), ("30S", Code::Ok, 1)] {
        let status = called(&daemon, RESOLVE, &[("grpc-timeout", timeout.as_bytes())], &body).await;
        assert_eq!(status.code(), code, "{status:?}");
        assert_eq!(daemon.client.sessions(&Default::default()).await.unwrap().sessions.len(), made, "{timeout}");
    }
}

#[tokio::test]
async fn frames_that_are_none_end_their_own_connection() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let list = block(&daemon, LIST_RUNS, &[]);
    let cases: [(&str, Vec<u8>); 7] = [
        ("noise", (0..=255_u8).cycle().skip(7).take(10_000).collect()),
        ("a frame that is too large", [&[0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1][..], &[0; 64]].concat()),
        ("settings of an odd length", frame(SETTINGS, 0, 0, b"12345")),
        ("data before a head", frame(DATA, 0, 1, b"x")),
        ("a stream with an even number", frame(HEADERS, END_HEADERS, 2, &list)),
        ("headers that are none", frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xff; 40])),
        ("a continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, &list)),
    ];
    for (name, bytes) in cases {
        let mut connection = Http2::open(&daemon);
        let _ = connection.0.write_all(&bytes);
        assert!(connection.goodbye().is_none_or(|code| code != 0), "{name} was taken for good");
        another_is_answered(&daemon).await;
    }
    unharmed(&daemon, before).await;
}

#[tokio::test]
async fn heads_without_end_are_cut_off() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let mut connection = Http2::open(&daemon);
    connection.send(HEADERS, 0, 1, &block(&daemon, LIST_RUNS, &[])).unwrap();
    // A header that is not in any table, again and again: half a gigabyte if it were all taken.
    let mut more = Vec::new();
    while more.len() < 16_000 {
        more.push(0);
        text(b"x-more", &mut more);
        text(&[b'x'; 100], &mut more);
    }
    let sent = (0..32_000).take_while(|_| connection.send(CONTINUATION, 0, 1, &more).is_ok()).count();
    assert!(sent < 32_000, "a head of half a gigabyte was taken");
    another_is_answered(&daemon).await;
    unharmed(&daemon, before).await;
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let mut connection = Http2::open(&daemon);
    let begin = block(&daemon, "/palyra.gateway.v1.GatewayService/RunStream", &[]);
    let all: Vec<u8> = (0..1000).flat_map(|number| frame(HEADERS, END_HEADERS, 2 * number + 1, &begin)).collect();
    // The daemon may hang up in the middle.
    let _ = connection.0.write_all(&all);
    let _ = connection.send(PING, 0, 0, b"are you?");
    let (mut streams_refused, mut ended) = (0, false);
    loop {
        match connection.frame() {
            Some((RST_STREAM, _, _, code)) => {
                assert_eq!(code, [0, 0, 0, 7], "refused without having been begun");
                streams_refused += 1;
            }
            // The answer to the ping, behind everything that was refused.
            Some((PING, 1, ..)) => break,
            Some((GOAWAY, ..)) | None => {
                ended = true;
                break;
            }
            Some(_) => {}
        }
    }
    assert!(ended || streams_refused >= 1000 - 128, "only {streams_refused} of a thousand streams were refused");
    another_is_answered(&daemon).await;
    unharmed(&daemon, before).await;
}

#[tokio::test]
async fn streams_that_are_reset_in_a_rush_end_their_own_connection() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let mut connection = Http2::open(&daemon);
    let begin = block(&daemon, LIST_RUNS, &[]);
    let all: Vec<u8> = (0..20_000)
        .flat_map(|number| {
            let stream = 2 * number + 1;
            [frame(HEADERS, END_HEADERS, stream, &begin), frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
        })
        .collect();
    let _ = connection.0.write_all(&all);
    // ENHANCE_YOUR_CALM, or no word at all.
    assert!(matches!(connection.goodbye(), Some(11) | None));
    another_is_answered(&daemon).await;
    unharmed(&daemon, before).await;
}

#[tokio::test]
async fn pages_that_rebind_their_name_reach_no_method() {
    let place = Place::new();
    let daemon = place.start().await;
    let port = grpc_address(&daemon).rsplit(':').next().unwrap().to_owned();
    for (name, value, code) in [
        ("host", format!("evil.example:{port}"), "host_refused"),
        ("origin", "https://evil.example".to_owned(), "origin_refused"),
    ] {
        let status = called(&daemon, LIST_RUNS, &[(name, value.as_bytes())], b"\x00\x00\x00\x00\x00").await;
        assert_eq!(error_from_status(&status).code, code, "{status:?}");
    }
}
