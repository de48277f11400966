//! Thousands of connections that never authenticate, of every protocol, beside an owner who works and who can stop the daemon.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use palyra_testkit::TestContext;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Connections of each protocol: more than all slots of a listener together.
const STRANGERS: usize = 2_100;
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
/// The beginning of a TLS record that holds a ClientHello, and no more of it.
const HALF_CLIENT_HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

/// The strangers themselves need more files than a shell usually allows.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
}

fn address(context: &TestContext, file: &str) -> String {
    std::fs::read_to_string(context.state_root().join(file)).unwrap().trim().to_owned()
}

/// Opens the connections and says the same on each of them. The daemon may drop any of them at any time.
fn crowd(address: &str, say: &[u8], wait_for_answer: bool) -> Vec<TcpStream> {
    let mut crowd = Vec::with_capacity(STRANGERS);
    for _ in 0..STRANGERS {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let _ = stream.write_all(say);
        if wait_for_answer {
            let _ = stream.read(&mut [0; 512]);
        }
        crowd.push(stream);
    }
    crowd
}

/// One request of the owner over TCP on a connection that stays open.
fn ask(stream: &mut TcpStream, address: &str, token: &str) -> String {
    let request = format!("GET /api/v1/principal HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "the connection was closed: {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&chunk[..read]);
    }
    String::from_utf8(answer).unwrap()
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn starts(context: &TestContext) {
    let started = context.run(["daemon", "start"]).unwrap();
    assert_eq!(started.code, 0, "{started}");
}

fn works_and_stops(context: &TestContext) {
    for arguments in [&["run", "list the files"][..], &["runs", "list"], &["daemon", "status"], &["daemon", "stop"]] {
        let ran = context.run(arguments).unwrap();
        assert_eq!(ran.code, 0, "{arguments:?}: {ran}");
    }
}

#[test]
fn strangers_over_plain_tcp_keep_the_owner_from_nothing() {
    allow_many_files();
    let context = TestContext::new().unwrap();
    starts(&context);
    let (http, grpc) = (address(&context, "http.addr"), address(&context, "grpc.addr"));
    let token = address(&context, "local.token");
    let mut before = connect(&http);
    assert!(ask(&mut before, &http, &token).starts_with("HTTP/1.1 200"));

    let idle = format!("GET /healthz HTTP/1.1\r\nHost: {http}\r\n\r\n");
    let half_a_head = format!("GET /healthz HTTP/1.1\r\nHost: {http}\r\nX-Unfinished: ");
    let upgrade = format!(
        "GET /acp/v1/ws HTTP/1.1\r\nHost: {http}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let mut crowds = Vec::new();
    for (protocol, at, say, wait_for_answer) in [
        ("TCP without a word", &http, &b""[..], false),
        ("half a head of HTTP/1", &http, half_a_head.as_bytes(), false),
        ("HTTP/1", &http, idle.as_bytes(), true),
        ("HTTP/2", &http, HTTP2_PREFACE, false),
        ("gRPC", &grpc, HTTP2_PREFACE, false),
        ("WebSocket", &http, upgrade.as_bytes(), true),
    ] {
        let crowd = crowd(at, say, wait_for_answer);
        let mut fresh = connect(&http);
        assert!(ask(&mut fresh, &http, &token).starts_with("HTTP/1.1 200"), "beside {protocol}");
        assert!(ask(&mut before, &http, &token).starts_with("HTTP/1.1 200"), "beside {protocol}");
        let ran = context.run(["runs", "list"]).unwrap();
        assert_eq!(ran.code, 0, "beside {protocol}: {ran}");
        // Most of the newest crowd stays until the end; the file limit of the test is finite.
        crowds.push(crowd.into_iter().take(1_100).collect::<Vec<_>>());
    }
    works_and_stops(&context);
}

#[test]
fn strangers_in_the_middle_of_a_tls_handshake_keep_the_owner_from_nothing() {
    allow_many_files();
    let context = TestContext::new().unwrap().env("PALYRA_HTTP_TLS", "true");
    starts(&context);
    let http = address(&context, "http.addr");
    let _crowds = [crowd(&http, HALF_CLIENT_HELLO, false), crowd(&http, b"", false)];
    works_and_stops(&context);
}
