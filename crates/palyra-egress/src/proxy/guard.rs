//! What stands before hyper: requests that two programs could read differently do not pass.
//!
//! Request smuggling lives on disagreement about where a request ends: two lengths, a length and chunks, `chunked` spelled oddly, a bare line feed, a
//! space before the colon, a folded line. Hyper accepts some of these and repairs them; we refuse them, each with its reason. The guard reads
//! heads strictly and follows bodies just far enough to know where the next head begins. Hyper then reads the same bytes, and what it writes to
//! the host is its own serialisation, never the client's.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::{Refusal, RefusalReason};

/// Most headers of a request.
const HEADER_COUNT: usize = 100;
/// Longest line that announces a chunk. Extensions are legal and used by nobody; a long one is an attempt to hide something.
const CHUNK_LINE: usize = 64;
/// How much is read from the client at once.
const READ_SIZE: usize = 64 * 1024;

pub(super) fn ambiguous(reason: &str) -> Refusal {
    Refusal::new(RefusalReason::AmbiguousRequest, format!("the request is refused: {reason}"))
}

pub(super) fn too_large(limit: usize) -> Refusal {
    Refusal::new(
        RefusalReason::HeaderLimit,
        format!("the request is refused: its headers are larger than {limit} bytes"),
    )
}

/// How long the body behind a head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
}

/// What the guard understood of a head.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HeadFacts {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) host: Option<String>,
    pub(super) proxy_authorization: Option<String>,
    pub(super) framing: Framing,
    /// Length of the head, its empty line included.
    pub(super) length: usize,
}

/// Reads a complete head strictly. `bytes` may go on behind it.
pub(super) fn check_head(bytes: &[u8], limit: usize) -> Result<HeadFacts, Refusal> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n").ok_or_else(|| ambiguous("its headers are incomplete"))? + 4;
    if end > limit {
        return Err(too_large(limit));
    }
    let head = bytes.get(..end).unwrap_or_default();
    check_lines(head)?;
    let mut slots = [httparse::EMPTY_HEADER; HEADER_COUNT];
    let mut request = httparse::Request::new(&mut slots);
    match request.parse(head) {
        Ok(httparse::Status::Complete(length)) if length == end => {}
        Err(httparse::Error::TooManyHeaders) => return Err(too_large(limit)),
        _ => return Err(ambiguous("its headers are malformed")),
    }
    let mut host = None;
    let mut length: Option<u64> = None;
    let mut chunked = false;
    let mut proxy_authorization = None;
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).ok().map(str::trim);
        match header.name.to_ascii_lowercase().as_str() {
            "host" => {
                let value = value.ok_or_else(|| ambiguous("its `Host` header is not text"))?;
                if host.replace(value.to_owned()).is_some() {
                    return Err(ambiguous("it has more than one `Host` header"));
                }
            }
            "content-length" => {
                // Also "5, 5" and "+5": whoever sends a length writes it as digits, once.
                let number = value
                    .filter(|value| !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()))
                    .and_then(|value| value.parse().ok());
                let number = number.ok_or_else(|| ambiguous("its `Content-Length` is not a number"))?;
                if length.replace(number).is_some() {
                    return Err(ambiguous("it has more than one `Content-Length`"));
                }
            }
            "transfer-encoding" => {
                if chunked || !value.is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
                    return Err(ambiguous("its `Transfer-Encoding` is not exactly `chunked`"));
                }
                chunked = true;
            }
            "proxy-authorization" if proxy_authorization.is_some() => {
                return Err(ambiguous("it has more than one `Proxy-Authorization`"));
            }
            "proxy-authorization" => proxy_authorization = value.map(str::to_owned),
            // Names that some servers read as the ones above.
            "content_length" | "transfer_encoding" | "content-length-" => {
                return Err(ambiguous("it has a header that resembles `Content-Length` or `Transfer-Encoding`"));
            }
            _ => {}
        }
    }
    if chunked && length.is_some() {
        return Err(ambiguous("it has both `Content-Length` and `Transfer-Encoding`"));
    }
    if chunked && request.version == Some(0) {
        return Err(ambiguous("it is HTTP/1.0 with `Transfer-Encoding`"));
    }
    let method = request.method.unwrap_or_default().to_owned();
    if method == "CONNECT" && (chunked || length.is_some_and(|length| length > 0)) {
        return Err(ambiguous("`CONNECT` has a body"));
    }
    let framing = if chunked { Framing::Chunked } else { Framing::Length(length.unwrap_or(0)) };
    Ok(HeadFacts {
        method,
        target: request.path.unwrap_or_default().to_owned(),
        host,
        proxy_authorization,
        framing,
        length: end,
    })
}

/// What httparse forgives and others read otherwise: bare line feeds, folded lines, NUL and other control characters.
fn check_lines(head: &[u8]) -> Result<(), Refusal> {
    if matches!(head.first(), Some(b'\r' | b'\n')) {
        return Err(ambiguous("it starts with an empty line"));
    }
    let mut previous = 0;
    for (index, byte) in head.iter().copied().enumerate() {
        match byte {
            b'\n' if previous != b'\r' => return Err(ambiguous("its headers contain a bare line feed")),
            b'\r' if head.get(index + 1) != Some(&b'\n') => {
                return Err(ambiguous("its headers contain a bare carriage return"));
            }
            b' ' | b'\t' if previous == b'\n' => return Err(ambiguous("its headers contain a folded line")),
            0..=8 | 11 | 12 | 14..=31 | 127 => return Err(ambiguous("its headers contain a control character")),
            _ => {}
        }
        previous = byte;
    }
    Ok(())
}

/// Where in a request the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Head,
    Body(u64),
    ChunkLine,
    ChunkData(u64),
    ChunkEnd,
    /// The empty line behind the last chunk.
    Trailer,
}

/// Follows a stream of requests and says how much of it may be read by others.
pub(super) struct Follower {
    place: Place,
    limit: usize,
}

impl Follower {
    pub(super) const fn new(limit: usize) -> Self {
        Self { place: Place::Head, limit }
    }

    /// How many bytes at the front of `bytes` are understood. Less than all of them: the rest has to be longer.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match self.step(rest) {
                // What came before is fine; the next call says what is wrong here.
                Err(_) if at > 0 => break,
                Err(refusal) => return Err(refusal),
                Ok(0) => break,
                Ok(count) => at += count,
            }
        }
        Ok(at)
    }

    fn step(&mut self, rest: &[u8]) -> Result<usize, Refusal> {
        match self.place {
            Place::Head => {
                if memchr::memmem::find(rest, b"\r\n\r\n").is_none() {
                    // A bare line feed would never complete the head, so it is looked for now.
                    check_lines(rest.strip_suffix(b"\r").unwrap_or(rest))?;
                    return if rest.len() > self.limit { Err(too_large(self.limit)) } else { Ok(0) };
                }
                let facts = check_head(rest, self.limit)?;
                self.place = match facts.framing {
                    Framing::Length(0) => Place::Head,
                    Framing::Length(length) => Place::Body(length),
                    Framing::Chunked => Place::ChunkLine,
                };
                Ok(facts.length)
            }
            Place::Body(left) => {
                let count = left.min(rest.len() as u64);
                self.place = if left == count { Place::Head } else { Place::Body(left - count) };
                Ok(usize::try_from(count).unwrap_or(rest.len()))
            }
            Place::ChunkLine => {
                let Some(end) = memchr::memchr(b'\n', rest) else {
                    return if rest.len() > CHUNK_LINE {
                        Err(ambiguous("a chunk-size line is too long"))
                    } else {
                        Ok(0)
                    };
                };
                let line = rest.get(..end).and_then(|line| line.strip_suffix(b"\r"));
                let digits =
                    line.filter(|line| (1..=15).contains(&line.len()) && line.iter().all(u8::is_ascii_hexdigit));
                let size = digits
                    .and_then(|digits| std::str::from_utf8(digits).ok())
                    .and_then(|digits| u64::from_str_radix(digits, 16).ok());
                let size = size.ok_or_else(|| ambiguous("a chunk size is not a hexadecimal number"))?;
                self.place = if size == 0 { Place::Trailer } else { Place::ChunkData(size) };
                Ok(end + 1)
            }
            Place::ChunkData(left) => {
                let count = left.min(rest.len() as u64);
                self.place = if left == count { Place::ChunkEnd } else { Place::ChunkData(left - count) };
                Ok(usize::try_from(count).unwrap_or(rest.len()))
            }
            Place::ChunkEnd => self.line_end(rest, Place::ChunkLine, "a chunk does not match its announced size"),
            Place::Trailer => self.line_end(rest, Place::Head, "it has trailers"),
        }
    }

    fn line_end(&mut self, rest: &[u8], next: Place, reason: &str) -> Result<usize, Refusal> {
        match rest {
            [b'\r', b'\n', ..] => {
                self.place = next;
                Ok(2)
            }
            [b'\r'] => Ok(0),
            _ => Err(ambiguous(reason)),
        }
    }
}

/// The reason why a guarded stream was ended, seen from outside hyper.
pub(super) type Reason = Arc<Mutex<Option<Refusal>>>;

/// A stream of requests of which only what is understood can be read.
pub(super) struct Guard<S> {
    stream: S,
    follower: Follower,
    raw: BytesMut,
    clean: BytesMut,
    reason: Reason,
}

impl<S> Guard<S> {
    pub(super) fn new(stream: S, limit: usize) -> (Self, Reason) {
        let reason = Reason::default();
        let guard = Self {
            stream,
            follower: Follower::new(limit),
            raw: BytesMut::new(),
            clean: BytesMut::new(),
            reason: Arc::clone(&reason),
        };
        (guard, reason)
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match this.follower.follow(&this.raw) {
                Ok(understood) => this.clean.unsplit(this.raw.split_to(understood)),
                Err(refusal) if this.clean.is_empty() => {
                    let error = io::Error::new(io::ErrorKind::InvalidData, refusal.message.clone());
                    *this.reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
                    return Poll::Ready(Err(error));
                }
                Err(_) => {}
            }
            if !this.clean.is_empty() {
                break;
            }
            let before = this.raw.len();
            this.raw.resize(before + READ_SIZE, 0);
            let mut space = ReadBuf::new(this.raw.get_mut(before..).unwrap_or_default());
            let outcome = Pin::new(&mut this.stream).poll_read(cx, &mut space);
            let count = space.filled().len();
            this.raw.truncate(before + count);
            ready!(outcome)?;
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        let count = this.clean.len().min(buffer.remaining());
        buffer.put_slice(this.clean.get(..count).unwrap_or_default());
        this.clean.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
