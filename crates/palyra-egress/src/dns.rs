//! A resolver that asks one named server, and the little of DNS it needs.
//!
//! For operators who do not want sandboxes to resolve through the machine's own configuration, and for tests with a server that lies. It asks for A
//! and AAAA over UDP and repeats over TCP when an answer does not fit. An answer must match the question's id and name; compression
//! pointers may only point backwards, so no answer can make the reader loop.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use crate::resolve::Resolver;

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;
const CLASS_IN: u16 = 1;
/// Longest chain of aliases that is followed inside one answer.
const ALIAS_LIMIT: usize = 8;
/// How long one datagram may take before it is sent once more.
const ATTEMPT: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;

/// One name server.
#[derive(Debug, Clone, Copy)]
pub struct NameServer {
    address: SocketAddr,
}

impl NameServer {
    /// The server at this address.
    #[must_use]
    pub const fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    async fn ask(&self, name: &str, kind: u16) -> Result<Vec<IpAddr>, String> {
        let mut id = [0; 2];
        getrandom::fill(&mut id).map_err(|error| error.to_string())?;
        let id = u16::from_be_bytes(id);
        let question = question(id, name, kind).ok_or("the name is not a valid DNS name")?;
        let mut last = "the name server does not answer".to_owned();
        for _ in 0..ATTEMPTS {
            match tokio::time::timeout(ATTEMPT, self.over_udp(&question, id, name, kind)).await {
                Ok(Ok(Answer::Addresses(addresses))) => return Ok(addresses),
                Ok(Ok(Answer::Truncated)) => {
                    return tokio::time::timeout(ATTEMPT, self.over_tcp(&question, id, name, kind))
                        .await
                        .map_err(|_| last.clone())?;
                }
                Ok(Err(reason)) => last = reason,
                Err(_) => {}
            }
        }
        Err(last)
    }

    async fn over_udp(&self, question: &[u8], id: u16, name: &str, kind: u16) -> Result<Answer, String> {
        let any: IpAddr =
            if self.address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).await.map_err(|error| error.to_string())?;
        // A connected socket takes datagrams from this server alone.
        socket.connect(self.address).await.map_err(|error| error.to_string())?;
        socket.send(question).await.map_err(|error| error.to_string())?;
        let mut buffer = [0; 4096];
        loop {
            let length = socket.recv(&mut buffer).await.map_err(|error| error.to_string())?;
            let message = buffer.get(..length).unwrap_or_default();
            // A datagram that is not the answer to this question is not an answer: the real one may still come.
            match read_answer(message, id, name, kind) {
                Err(Unreadable::NotOurs) => {}
                Err(Unreadable::Failed(reason)) => return Err(reason),
                Ok(answer) => return Ok(answer),
            }
        }
    }

    async fn over_tcp(&self, question: &[u8], id: u16, name: &str, kind: u16) -> Result<Vec<IpAddr>, String> {
        let mut stream = TcpStream::connect(self.address).await.map_err(|error| error.to_string())?;
        let length = u16::try_from(question.len()).map_err(|error| error.to_string())?;
        stream.write_all(&[&length.to_be_bytes(), question].concat()).await.map_err(|error| error.to_string())?;
        let length = stream.read_u16().await.map_err(|error| error.to_string())?;
        let mut message = vec![0; usize::from(length)];
        stream.read_exact(&mut message).await.map_err(|error| error.to_string())?;
        match read_answer(&message, id, name, kind) {
            Ok(Answer::Addresses(addresses)) => Ok(addresses),
            Ok(Answer::Truncated) => Err("the name server truncated its answer".to_owned()),
            Err(Unreadable::NotOurs) => Err("the name server's answer does not match the query".to_owned()),
            Err(Unreadable::Failed(reason)) => Err(reason),
        }
    }
}

#[async_trait]
impl Resolver for NameServer {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let (four, six) = tokio::join!(self.ask(name, TYPE_A), self.ask(name, TYPE_AAAA));
        match (four, six) {
            (Ok(four), Ok(six)) => Ok([four, six].concat()),
            // Half an answer could hide the half that would be refused, so it is none.
            (Err(reason), _) | (_, Err(reason)) => Err(reason),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Addresses(Vec<IpAddr>),
    Truncated,
}

#[derive(Debug, PartialEq, Eq)]
enum Unreadable {
    NotOurs,
    Failed(String),
}

fn question(id: u16, name: &str, kind: u16) -> Option<Vec<u8>> {
    let mut message = Vec::with_capacity(name.len() + 18);
    message.extend(id.to_be_bytes());
    // Recursion desired; one question.
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        message.push(length);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend(kind.to_be_bytes());
    message.extend(CLASS_IN.to_be_bytes());
    Some(message)
}

/// A position in a message; every read may fail.
struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let bytes = self.message.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn short(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// A name in lower case, without the final dot.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        let mut at = self.at;
        // Set at the first pointer: reading goes on behind it.
        let mut behind = None;
        // INVARIANT: each pointer leads further back than the last, so the walk ends.
        let mut bound = self.at;
        loop {
            let length = usize::from(*self.message.get(at)?);
            match length {
                0 => {
                    self.at = behind.unwrap_or(at + 1);
                    return Some(name);
                }
                1..=63 => {
                    let label = self.message.get(at + 1..at + 1 + length)?;
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.push_str(&std::str::from_utf8(label).ok()?.to_ascii_lowercase());
                    if name.len() > 255 {
                        return None;
                    }
                    at += 1 + length;
                }
                192..=255 => {
                    let low = usize::from(*self.message.get(at + 1)?);
                    let pointer = (length & 0x3f) << 8 | low;
                    behind = behind.or(Some(at + 2));
                    if pointer >= bound {
                        return None;
                    }
                    bound = pointer;
                    at = pointer;
                }
                _ => return None,
            }
        }
    }
}

fn read_answer(message: &[u8], id: u16, name: &str, kind: u16) -> Result<Answer, Unreadable> {
    let mut reader = Reader { message, at: 0 };
    let malformed = || Unreadable::Failed("the name server's answer is malformed".to_owned());
    let given_id = reader.short().ok_or(Unreadable::NotOurs)?;
    let flags = reader.short().ok_or(Unreadable::NotOurs)?;
    let questions = reader.short().ok_or(Unreadable::NotOurs)?;
    let answers = reader.short().ok_or(Unreadable::NotOurs)?;
    reader.take(4).ok_or(Unreadable::NotOurs)?;
    if given_id != id || flags & 0x8000 == 0 || questions != 1 {
        return Err(Unreadable::NotOurs);
    }
    let asked = reader.name().ok_or(Unreadable::NotOurs)?;
    let asked_kind = reader.short().ok_or(Unreadable::NotOurs)?;
    let asked_class = reader.short().ok_or(Unreadable::NotOurs)?;
    if asked != name || asked_kind != kind || asked_class != CLASS_IN {
        return Err(Unreadable::NotOurs);
    }
    match flags & 0x000f {
        0 => {}
        3 => return Err(Unreadable::Failed("the name does not exist".to_owned())),
        code => return Err(Unreadable::Failed(format!("the name server failed with code {code}"))),
    }
    if flags & 0x0200 != 0 {
        return Ok(Answer::Truncated);
    }
    let mut aliases = Vec::new();
    let mut found = Vec::new();
    for _ in 0..answers {
        let owner = reader.name().ok_or_else(malformed)?;
        let record_kind = reader.short().ok_or_else(malformed)?;
        let class = reader.short().ok_or_else(malformed)?;
        reader.take(4).ok_or_else(malformed)?;
        let length = usize::from(reader.short().ok_or_else(malformed)?);
        let start = reader.at;
        match (class, record_kind) {
            (CLASS_IN, TYPE_CNAME) => aliases.push((owner, reader.name().ok_or_else(malformed)?)),
            (CLASS_IN, given) if given == kind => {
                let data = reader.take(length).ok_or_else(malformed)?;
                let address = match kind {
                    TYPE_A => <[u8; 4]>::try_from(data).map(|octets| IpAddr::from(Ipv4Addr::from(octets))),
                    _ => <[u8; 16]>::try_from(data).map(|octets| IpAddr::from(Ipv6Addr::from(octets))),
                };
                found.push((owner, address.map_err(|_| malformed())?));
            }
            _ => {}
        }
        reader.at = start.checked_add(length).ok_or_else(malformed)?;
    }
    // Only addresses of the name itself, or of a name that its aliases lead to.
    let mut wanted = name.to_owned();
    for _ in 0..ALIAS_LIMIT {
        match aliases.iter().find(|(from, _)| *from == wanted) {
            Some((_, to)) => wanted.clone_from(to),
            None => break,
        }
    }
    Ok(Answer::Addresses(found.into_iter().filter(|(owner, _)| *owner == wanted).map(|(_, address)| address).collect()))
}

#[cfg(test)]
#[path = "dns_tests.rs"]
mod tests;
