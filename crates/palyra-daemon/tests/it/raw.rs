//! Requests exactly as they are written, for what a well-behaved client never sends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use crate::support::Daemon;

/// An answer read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In small letters.
    pub(crate) head: String,
    /// As it was written.
    written: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a header as it was written.
    pub(crate) fn raw_header(&self, name: &str) -> String {
        let mut headers = self.written.lines().filter_map(|line| line.split_once(':'));
        let found = headers.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.unwrap_or_else(|| panic!("no {name}: {self:?}")).1.trim().to_owned()
    }

    /// The code of the error envelope.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_else(|| panic!("no code: {self:?}")).to_owned()
    }

    /// Status and code together.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.code())
    }
}

/// Sends over loopback HTTP with exactly these headers.
pub(crate) fn loopback(daemon: &Daemon, request_line: &str, headers: &[(&str, &str)]) -> Answer {
    let stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    exchange(stream, request_line, headers, b"")
}

/// Sends a body over loopback HTTP, with these headers besides those that every request needs.
pub(crate) fn exchange_with(daemon: &Daemon, request_line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let (host, length) = (daemon.address(), body.len().to_string());
    let mut all = vec![("Host", host.as_str()), ("Content-Length", length.as_str())];
    all.extend_from_slice(headers);
    exchange(stream, request_line, &all, body.as_bytes())
}

/// Sends a JSON body over loopback HTTP, with a bearer token or without.
pub(crate) fn loopback_json(daemon: &Daemon, request_line: &str, token: Option<&str>, body: &str) -> Answer {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<_> = bearer.as_deref().map(|bearer| ("Authorization", bearer)).into_iter().collect();
    exchange_with(daemon, request_line, &headers, body)
}

/// Sends over the Unix socket.
pub(crate) fn unix(daemon: &Daemon, request_line: &str, body: &[u8]) -> Answer {
    let stream = UnixStream::connect(daemon.state_root.join("palyrad.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let length = body.len().to_string();
    exchange(stream, request_line, &[("Host", "palyrad"), ("Content-Length", &length)], body)
}

/// Sends over any connection and reads to its end.
pub(crate) fn exchange(
    mut stream: impl Read + Write,
    request_line: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut request = format!("{request_line} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    // A refused body need not be read to its end by the other side.
    let _ = stream.write_all(body);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), written: head.to_owned(), body: body.to_owned() }
}
