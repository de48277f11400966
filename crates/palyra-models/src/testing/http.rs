//! As much HTTP/1.1 as the scripted server needs: one connection, requests with a length, chunked answers.
//!
//! Reads time out often so that a stopping server is noticed; a silent peer costs nothing but a sleeping thread.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::CapturedRequest;
use super::fault::Fault;
use super::reply::Reply;
use super::said::Wire;

/// How often a waiting thread looks whether the server stops.
const TICK: Duration = Duration::from_millis(20);
/// Largest request head and body; a test that sends more is in error.
const MAX_HEAD: usize = 64 * 1024;
const MAX_BODY: usize = 64 * 1024 * 1024;

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// Completely; the connection may be used again.
    Whole,
    /// On purpose, in the middle.
    Closed,
    /// The client hung up.
    Abandoned,
}

/// A connection with a client.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    held: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TICK))?;
        // A client that stops reading must not hold the thread for ever.
        stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        Ok(Self { stream, held: Vec::new() })
    }

    /// The next request; none when the client is gone, sends nonsense, or the server stops.
    pub(super) fn read_request(&mut self, stopping: &dyn Fn() -> bool) -> Option<CapturedRequest> {
        let head_end = loop {
            if let Some(at) = self.held.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            if self.held.len() > MAX_HEAD {
                return None;
            }
            self.fill(stopping)?;
        };
        let head = String::from_utf8_lossy(self.held.get(..head_end)?).into_owned();
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(Some(0), |(_, value)| value.parse().ok())?;
        let body_start = head_end + 4;
        if length > MAX_BODY {
            return None;
        }
        while self.held.len() < body_start + length {
            self.fill(stopping)?;
        }
        let body = serde_json::from_slice(self.held.get(body_start..body_start + length)?).unwrap_or(Value::Null);
        self.held.drain(..body_start + length);
        Some(CapturedRequest { method, path, headers, body })
    }

    /// Sends an answer, with its fault.
    pub(super) fn send(&mut self, reply: &Reply, wire: &dyn Wire, stopping: &dyn Fn() -> bool) -> Sent {
        if reply.fault == Some(Fault::CloseBeforeAnswer) {
            return Sent::Closed;
        }
        let mut head = format!(
            "HTTP/1.1 {} Scripted\r\ncontent-type: {}\r\ntransfer-encoding: chunked\r\n",
            reply.status,
            reply.shown_content_type(wire)
        );
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        if self.stream.write_all(head.as_bytes()).is_err() {
            return Sent::Abandoned;
        }
        let mut allowed = reply.fault.and_then(Fault::bytes_before).unwrap_or(usize::MAX);
        for piece in reply.pieces(wire) {
            if stopping() {
                return Sent::Closed;
            }
            std::thread::sleep(reply.delay);
            let cut = piece.get(..allowed).unwrap_or(&piece);
            // The size of the whole piece is announced, so that a cut one leaves the chunk open.
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), cut].concat();
            if self.stream.write_all(&chunk).is_err() {
                return Sent::Abandoned;
            }
            if cut.len() < piece.len() || allowed == cut.len() {
                return self.misbehave(reply.fault, stopping);
            }
            allowed -= cut.len();
            if self.stream.write_all(b"\r\n").is_err() {
                return Sent::Abandoned;
            }
        }
        match self.stream.write_all(b"0\r\n\r\n") {
            Ok(()) => Sent::Whole,
            Err(_) => Sent::Abandoned,
        }
    }

    fn misbehave(&mut self, fault: Option<Fault>, stopping: &dyn Fn() -> bool) -> Sent {
        if matches!(fault, Some(Fault::ResetAfter(_))) {
            // Closing with nothing to linger for is what makes the system reset the connection.
            let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
        }
        if !matches!(fault, Some(Fault::SilentAfter(_))) {
            return Sent::Closed;
        }
        // Whatever the client still sends is of no interest; that it leaves is.
        while self.fill(stopping).is_some() {}
        if stopping() { Sent::Closed } else { Sent::Abandoned }
    }

    /// Reads some more; none at the end of the connection or of the server.
    fn fill(&mut self, stopping: &dyn Fn() -> bool) -> Option<()> {
        let mut buffer = [0; 16 * 1024];
        loop {
            if stopping() {
                return None;
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => {
                    self.held.extend_from_slice(buffer.get(..count)?);
                    return Some(());
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
