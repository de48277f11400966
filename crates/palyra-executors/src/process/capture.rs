//! What a process prints: passed on live, kept from both ends, counted in full.
//!
//! A stream is read until it ends, however much comes, so that a process never stops because nobody reads; but memory stays bounded: the whole is kept up to
//! [`WHOLE_BYTES`] for the artifact, and beyond that only its beginning and its end.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use palyra_tools::ToolProgress;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;

/// Most bytes of one stream that are kept as an artifact. More than this is a flood and no result.
pub(super) const WHOLE_BYTES: usize = 16 << 20;
/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// One stream as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Captured {
    /// The beginning, up to [`WHOLE_BYTES`].
    head: Vec<u8>,
    /// The end, once the beginning is full.
    tail: VecDeque<u8>,
    /// All bytes that came.
    pub(super) total: u64,
}

impl Captured {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = WHOLE_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        let (into_head, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(into_head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(CHUNK * 8);
        self.tail.drain(..excess);
    }

    /// Everything that is kept, with a mark where bytes are missing.
    pub(super) fn whole(&self) -> Vec<u8> {
        let mut bytes = self.head.clone();
        let missing = self.total.saturating_sub((self.head.len() + self.tail.len()) as u64);
        if missing > 0 {
            bytes.extend_from_slice(format!("\n[… {missing} bytes were not kept …]\n").as_bytes());
        }
        bytes.extend(&self.tail);
        bytes
    }

    /// Beginning and end as text of at most about `limit` bytes; says how much lies between.
    pub(super) fn excerpt(&self, limit: usize) -> (String, Cut) {
        let whole = self.whole();
        if whole.len() <= limit {
            return (String::from_utf8_lossy(&whole).into_owned(), Cut::No);
        }
        let half = limit / 2;
        let head = whole.get(..half).unwrap_or(&whole);
        let tail = whole.get(whole.len() - half..).unwrap_or(&[]);
        let between = self.total.saturating_sub(2 * half as u64);
        let text = format!(
            "{}\n[… {between} bytes left out …]\n{}",
            String::from_utf8_lossy(trim_end(head)),
            String::from_utf8_lossy(trim_start(tail))
        );
        (text, Cut::Yes)
    }

    /// Bytes from an offset on, as far as they are kept.
    pub(super) fn from(&self, offset: u64, limit: usize) -> &[u8] {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.head.len());
        let end = start.saturating_add(limit).min(self.head.len());
        self.head.get(start..end).unwrap_or(&[])
    }
}

/// Whether something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Yes,
    No,
}

/// A cut in the middle of a character must not show as a broken one.
fn trim_end(bytes: &[u8]) -> &[u8] {
    let keep = bytes.iter().rposition(|byte| byte & 0xC0 != 0x80).unwrap_or(bytes.len());
    if bytes.last().is_some_and(u8::is_ascii) { bytes } else { bytes.get(..keep).unwrap_or(bytes) }
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let skip = bytes.iter().position(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    bytes.get(skip..).unwrap_or(bytes)
}

/// Reads a stream to its end and hands every piece to `take`.
pub(super) async fn drain(stream: OwnedFd, progress: ToolProgress, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut stream = open(stream)?;
    let mut buffer = vec![0; CHUNK];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) => return Ok(()),
            Ok(count) => {
                let bytes = buffer.get(..count).unwrap_or(&[]);
                progress.output(bytes);
                take(bytes);
            }
            // The other side of a terminal that nobody holds any more answers with an error instead of an end.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A pipe is read by the runtime itself, a terminal on a thread.
fn open(stream: OwnedFd) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&stream)?.st_mode);
    if kind == rustix::fs::FileType::Fifo {
        return Ok(Box::new(pipe::Receiver::from_owned_fd(stream)?));
    }
    Ok(Box::new(tokio::fs::File::from_std(std::fs::File::from(stream))))
}

/// Writes text to a process and closes its input. A process that does not read it is its own business.
pub(super) async fn feed(stream: OwnedFd, text: Vec<u8>) {
    let write = async { pipe::Sender::from_owned_fd(stream)?.write_all(&text).await };
    if let Err(error) = write.await {
        tracing::debug!(%error, "a process did not read all of its input");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept_and_the_rest_is_counted() {
        let mut captured = Captured::default();
        for _ in 0..(WHOLE_BYTES / 1024 + 2048) {
            captured.push(&[b'x'; 1024]);
        }
        captured.push(b"the end");
        assert_eq!(captured.total, (WHOLE_BYTES + 2048 * 1024 + 7) as u64);
        let whole = captured.whole();
        assert!(whole.len() < WHOLE_BYTES + CHUNK * 8 + 64);
        assert!(whole.ends_with(b"the end"));
        let (text, cut) = captured.excerpt(100);
        assert_eq!(cut, Cut::Yes);
        assert!(text.starts_with("xxx") && text.ends_with("the end") && text.contains("bytes left out"), "{text}");
    }

    #[test]
    fn a_cut_never_shows_half_a_character() {
        let mut captured = Captured::default();
        captured.push("äöü€".repeat(50).as_bytes());
        for limit in 10..60 {
            let (text, _) = captured.excerpt(limit);
            assert!(!text.contains('\u{FFFD}'), "{limit}: {text}");
        }
        assert_eq!(captured.excerpt(10_000), ("äöü€".repeat(50), Cut::No));
    }
}
