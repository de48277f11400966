//! The bytes of an answer, under the clocks of each phase.
//!
//! Three clocks run: until the first byte, between two chunks, and over the whole call. The error of each names its phase, so that
//! whoever reads it knows which setting to raise. Dropping the body closes the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use tokio::time::{Instant, timeout_at};

use super::mask::Mask;
use super::options::Timeouts;
use super::transport::broken;
use crate::error::{ModelError, ModelErrorClass};

/// Most bytes of one answer. Framing costs about fifty times the text, so this is far above the longest answer there is.
const MAX_BYTES: usize = 512 * 1024 * 1024;

/// How long to wait for the next chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// As long as the phase allows.
    Usual,
    /// No longer than this: what is missing is decoration.
    AtMost(Duration),
}

/// The body of a successful answer.
#[derive(Debug)]
pub(crate) struct ByteBody {
    response: Response,
    timeouts: Timeouts,
    begun: Instant,
    first_by: Instant,
    received: usize,
    server: String,
    mask: Mask,
    /// Set when the body has been read to its end, which leaves the connection to the next call.
    kept: Arc<AtomicBool>,
}

impl ByteBody {
    pub(super) fn new(
        response: Response,
        timeouts: Timeouts,
        begun: Instant,
        server: String,
        mask: Mask,
        kept: Arc<AtomicBool>,
    ) -> Self {
        let first_by = begun + timeouts.first_byte;
        Self { response, timeouts, begun, first_by, received: 0, server, mask, kept }
    }

    /// The server, for people.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// What has to be taken out of the server's words.
    pub(super) fn mask(&self) -> Mask {
        self.mask.clone()
    }

    /// The content type as the server wrote it; empty if it did not.
    pub(super) fn content_type(&self) -> String {
        self.header(CONTENT_TYPE)
    }

    /// How the server says it packed the body; empty if it did not.
    pub(super) fn packing(&self) -> String {
        let packing = self.header(CONTENT_ENCODING);
        if packing.eq_ignore_ascii_case("identity") { String::new() } else { packing }
    }

    fn header(&self, name: HeaderName) -> String {
        let header = self.response.headers().get(name);
        header.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    }

    /// The next bytes; none at the end.
    pub(super) async fn chunk(&mut self, patience: Patience) -> Result<Option<Bytes>, ModelError> {
        let (deadline, phase) = self.deadline(patience);
        let Ok(read) = timeout_at(deadline, self.response.chunk()).await else { return Err(late(phase)) };
        let chunk = read.map_err(broken)?;
        if chunk.is_none() {
            self.kept.store(true, Ordering::Release);
        }
        self.received = self.received.saturating_add(chunk.as_ref().map_or(0, Bytes::len));
        if self.received > MAX_BYTES {
            return Err(ModelError::malformed("the server's answer is larger than 512 MiB"));
        }
        Ok(chunk)
    }

    /// The whole body, if it is no larger than this.
    pub(super) async fn whole(mut self, limit: usize) -> Result<Vec<u8>, ModelError> {
        let mut whole = Vec::new();
        while let Some(chunk) = self.chunk(Patience::Usual).await? {
            whole.extend_from_slice(&chunk);
            if whole.len() > limit {
                let mebibytes = limit / (1024 * 1024);
                return Err(ModelError::malformed(format!("the server's answer is larger than {mebibytes} MiB")));
            }
        }
        Ok(whole)
    }

    /// When waiting ends, and which clock ends it.
    fn deadline(&self, patience: Patience) -> (Instant, Phase) {
        let now = Instant::now();
        let Timeouts { first_byte, between_chunks, total, .. } = self.timeouts;
        let phase = match patience {
            Patience::AtMost(wait) => (now + wait, Phase::BetweenChunks(wait)),
            Patience::Usual if self.received == 0 => (self.first_by, Phase::FirstByte(first_byte)),
            Patience::Usual => (now + between_chunks, Phase::BetweenChunks(between_chunks)),
        };
        let whole = (self.begun + total, Phase::Total(total));
        if whole.0 < phase.0 { whole } else { phase }
    }
}

/// Which clock ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Connect(Duration),
    FirstByte(Duration),
    BetweenChunks(Duration),
    Total(Duration),
}

/// The error for a clock that ran out.
pub(super) fn late(phase: Phase) -> ModelError {
    let line = match phase {
        Phase::Connect(wait) => format!("no connection to the model server within {} seconds", wait.as_secs_f32()),
        Phase::FirstByte(wait) => {
            format!("the model server sent no first byte of its answer within {} seconds", wait.as_secs_f32())
        }
        Phase::BetweenChunks(wait) => {
            format!("the model server sent nothing for {} seconds between two parts of its answer", wait.as_secs_f32())
        }
        Phase::Total(wait) => {
            format!("the model server's answer was not complete after {} seconds in total", wait.as_secs_f32())
        }
    };
    ModelError::new(ModelErrorClass::Timeout, line)
}
