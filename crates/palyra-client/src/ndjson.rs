//! Streams of one JSON document per line.
//!
//! An empty line is a heartbeat: it says that the daemon lives and has nothing to tell. A line `{"error": …}` ends a stream
//! that could not be finished. A stream that ends without its last newline was cut off, and that is an error and not an end.
//!
//! Reading is cancel-safe: what has arrived is kept in the stream, not in the future, so `next` may be raced against a signal.

use std::marker::PhantomData;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::api::ErrorResponse;
use crate::error::ClientError;
use crate::transport::{Answer, one_line};

/// Largest line. Journal payloads beyond a quarter of a mebibyte are artifacts but come back whole, and patches and file
/// contents may be several mebibytes after escaping.
const LARGEST_LINE: usize = 32 * 1024 * 1024;

/// How long a stream may be silent. The daemon sends a heartbeat every ten seconds; where three in a row are missing, the link is dead, whatever the
/// system says about the connection.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// What a stream gave.
pub(crate) enum Line {
    /// A document.
    Document(Bytes),
    /// A sign of life.
    Heartbeat,
    /// The end.
    End,
}

/// The lines of an answer.
pub(crate) struct Lines {
    doing: &'static str,
    answer: Answer,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline, so that a long line is not searched again and again.
    searched: usize,
    silence: Duration,
}

impl Lines {
    pub(crate) fn new(doing: &'static str, answer: Answer) -> Self {
        Self { doing, answer, buffer: BytesMut::new(), searched: 0, silence: SILENCE }
    }

    /// The same lines with another bound on silence.
    pub(crate) fn silent_for_at_most(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    pub(crate) async fn next(&mut self) -> Result<Line, ClientError> {
        let doing = self.doing;
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(found) = unsearched.iter().position(|byte| *byte == b'\n') {
                let mut line = self.buffer.split_to(self.searched + found + 1).freeze();
                self.searched = 0;
                line.truncate(line.len() - 1);
                return match line.trim_ascii() {
                    [] => Ok(Line::Heartbeat),
                    text if text.starts_with(br#"{"error""#) => Err(ended_by(doing, text)),
                    _ => Ok(Line::Document(line)),
                };
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > LARGEST_LINE {
                let message = format!("a line is longer than {} MiB", LARGEST_LINE / (1024 * 1024));
                return Err(ClientError::Malformed { doing, message });
            }
            let frame = timeout(self.silence, self.answer.body.frame())
                .await
                .map_err(|_| ClientError::TimedOut { doing, after: self.silence })?;
            match frame {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                Some(Err(source)) => return Err(ClientError::Disconnected { doing, source: Box::new(source) }),
                None if self.buffer.is_empty() => return Ok(Line::End),
                None => {
                    let source = "the last line is truncated".into();
                    return Err(ClientError::Disconnected { doing, source });
                }
            }
        }
    }
}

fn ended_by(doing: &'static str, text: &[u8]) -> ClientError {
    match serde_json::from_slice::<ErrorResponse>(text) {
        Ok(ErrorResponse { error }) => ClientError::Refused(Box::new(one_line(error))),
        Err(error) => ClientError::Malformed { doing, message: error.to_string() },
    }
}

pub(crate) fn parse<T: DeserializeOwned>(doing: &'static str, line: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(line).map_err(|error| ClientError::Malformed { doing, message: error.to_string() })
}

/// A stream of documents of one type that ends when the daemon ends it.
pub struct NdjsonStream<T> {
    lines: Lines,
    documents: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> NdjsonStream<T> {
    pub(crate) fn new(doing: &'static str, answer: Answer) -> Self {
        Self { lines: Lines::new(doing, answer), documents: PhantomData }
    }

    /// The next document; `None` at the end. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<T>, ClientError> {
        loop {
            match self.lines.next().await? {
                Line::Document(line) => return parse(self.lines.doing, &line).map(Some),
                Line::Heartbeat => {}
                Line::End => return Ok(None),
            }
        }
    }
}

impl<T> std::fmt::Debug for NdjsonStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NdjsonStream").field("doing", &self.lines.doing).finish_non_exhaustive()
    }
}
