//! Reading the greeting of a TLS client: which server it says it wants.
//!
//! Pure and strict. Every length is checked against what is there, unknown extensions are skipped, and what is not a well-formed greeting is
//! malformed rather than guessed at: a tunnel whose greeting we cannot read is refused.

/// Largest greeting that is read. Greetings with post-quantum keys have about 2 KiB.
const HELLO_LIMIT: usize = 64 * 1024;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_HELLO: u16 = 0xfe0d;
const HOST_NAME: u8 = 0;

/// What a greeting says about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHello {
    /// The name it asks for, as it was written.
    pub server_name: Option<String>,
    /// Whether it carries another, encrypted name. Browsers send such an extension also when it is empty, and nobody can tell the two apart.
    pub hidden_name: bool,
}

/// What could be made of the first bytes of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HelloOutcome {
    /// A whole greeting.
    Hello(ClientHello),
    /// The start of one.
    Incomplete,
    /// Not TLS at all.
    NotTls,
    /// TLS, but not a greeting that can be trusted.
    Malformed,
}

/// Reads a greeting from the first bytes of a stream.
#[must_use]
pub fn read_client_hello(bytes: &[u8]) -> HelloOutcome {
    match bytes.first() {
        None => return HelloOutcome::Incomplete,
        Some(&HANDSHAKE) => {}
        Some(_) => return HelloOutcome::NotTls,
    }
    let message = match gather(bytes) {
        Ok(message) => message,
        Err(outcome) => return outcome,
    };
    read_message(&message).map_or(HelloOutcome::Malformed, HelloOutcome::Hello)
}

/// Joins the records that carry the greeting; clients may spread it over several.
fn gather(bytes: &[u8]) -> Result<Vec<u8>, HelloOutcome> {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        let Some((head, after)) = rest.split_first_chunk::<5>() else {
            // A record that begins with something else is no part of a greeting.
            return Err(if rest.first().is_none_or(|kind| *kind == HANDSHAKE) {
                HelloOutcome::Incomplete
            } else {
                HelloOutcome::Malformed
            });
        };
        let [kind, major, _, high, low] = *head;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if kind != HANDSHAKE || major != 3 || length == 0 || length > 16 * 1024 {
            return Err(HelloOutcome::Malformed);
        }
        let present = after.get(..length.min(after.len())).unwrap_or_default();
        message.extend_from_slice(present);
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Err(HelloOutcome::Malformed);
        }
        if let Some([_, a, b, c]) = message.first_chunk::<4>() {
            let wanted = usize::try_from(u32::from_be_bytes([0, *a, *b, *c])).unwrap_or(usize::MAX) + 4;
            if wanted > HELLO_LIMIT {
                return Err(HelloOutcome::Malformed);
            }
            if message.len() >= wanted {
                message.truncate(wanted);
                return Ok(message);
            }
        }
        if present.len() < length {
            return Err(HelloOutcome::Incomplete);
        }
        rest = after.get(length..).unwrap_or_default();
    }
}

/// A position in the greeting; every read may fail.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, back) = self.0.split_at_checked(count)?;
        self.0 = back;
        Some(front)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn short(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    fn block8(&mut self) -> Option<&'a [u8]> {
        let length = self.byte()?;
        self.take(usize::from(length))
    }

    fn block16(&mut self) -> Option<&'a [u8]> {
        let length = self.short()?;
        self.take(usize::from(length))
    }
}

fn read_message(message: &[u8]) -> Option<ClientHello> {
    let mut reader = Reader(message);
    reader.take(4)?; // type and length, checked before
    reader.take(2 + 32)?; // version, random
    reader.block8()?; // session
    reader.block16()?; // cipher suites
    reader.block8()?; // compression methods
    let mut hello = ClientHello { server_name: None, hidden_name: false };
    if reader.0.is_empty() {
        return Some(hello);
    }
    let mut extensions = Reader(reader.block16()?);
    if !reader.0.is_empty() {
        return None;
    }
    let mut named = false;
    while !extensions.0.is_empty() {
        let kind = extensions.short()?;
        let body = extensions.block16()?;
        match kind {
            // A second one would be two answers to one question.
            SERVER_NAME if named => return None,
            SERVER_NAME => {
                named = true;
                hello.server_name = Some(read_server_name(body)?);
            }
            ENCRYPTED_HELLO => hello.hidden_name = true,
            _ => {}
        }
    }
    Some(hello)
}

/// Exactly one entry, a host name in ASCII.
fn read_server_name(body: &[u8]) -> Option<String> {
    let mut outer = Reader(body);
    let mut list = Reader(outer.block16()?);
    if !outer.0.is_empty() || list.byte()? != HOST_NAME {
        return None;
    }
    let name = list.block16()?;
    if !list.0.is_empty() || name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    String::from_utf8(name.to_vec()).ok()
}

#[cfg(test)]
#[path = "hello_tests.rs"]
mod tests;
