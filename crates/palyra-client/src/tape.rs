//! Following the tape of a run across broken connections and restarts of the daemon, whatever the tape comes over.
//!
//! INVARIANT: the positions that a [`Tape`] yields are consecutive, whatever the connection does; what it tells about calls under way, if
//! asked to, has no position. The position itself, and when to give up, is `cursor.rs`; what a tape is read from is a [`TapeSource`], one for each transport.

use palyra_common::{RunId, RunStreamEvent};

use crate::api::{RunDetail, RunTapeParams};
use crate::cursor::{Cursor, Follow, Progress, Reconnect};
use crate::error::ClientError;

/// What an open stream gave.
#[derive(Debug)]
pub enum Heard {
    /// An event.
    Event(Box<RunStreamEvent>),
    /// A sign of life.
    Life,
    /// The end, in good order.
    End,
}

/// A stream of one run's events over one transport, which may break at any time and be opened again.
///
/// Every future may be dropped at any point: what has arrived stays in the source.
pub trait TapeSource: std::fmt::Debug + Send {
    /// Whether there is a stream to read.
    fn is_open(&self) -> bool;
    /// Opens a stream.
    fn open(&mut self, run_id: RunId, params: RunTapeParams) -> impl Future<Output = Result<(), ClientError>> + Send;
    /// What comes next on the open stream.
    fn next(&mut self) -> impl Future<Output = Result<Heard, ClientError>> + Send;
    /// Gives the stream up.
    fn close(&mut self);
    /// How the run stands.
    fn run(&self, run_id: RunId) -> impl Future<Output = Result<RunDetail, ClientError>> + Send;
}

/// The events of one run, in order and without gaps.
#[derive(Debug)]
pub struct Tape<S> {
    pub(crate) source: S,
    cursor: Cursor,
}

impl<S: TapeSource> Tape<S> {
    pub(crate) fn new(source: S, run_id: RunId, from_seq: u64, follow: Follow) -> Self {
        Self { source, cursor: Cursor::new(run_id, from_seq, follow) }
    }

    /// The same stream with how calls get on in between: events for which [`RunStreamEvent::progress`] says something, which have no
    /// position of their own.
    #[must_use]
    pub fn with_progress(mut self) -> Self {
        self.cursor.progress = Progress::Told;
        self
    }

    /// The same stream with another stubbornness.
    #[must_use]
    pub fn reconnecting(mut self, reconnect: Reconnect) -> Self {
        self.cursor.reconnect = reconnect;
        self
    }

    /// The position that comes next, from which another stream could go on.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.cursor.next_seq
    }

    /// The next event; `None` at the end. Cancel-safe.
    ///
    /// # Errors
    /// When the daemon refuses, or does not come back for long enough.
    pub async fn next(&mut self) -> Result<Option<RunStreamEvent>, ClientError> {
        while !self.cursor.ended {
            match self.attempt().await {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(error) => {
                    self.source.close();
                    self.cursor.back_off(error).await?;
                }
            }
        }
        self.source.close();
        Ok(None)
    }

    /// One step: opens a stream when there is none, takes what comes next otherwise.
    async fn attempt(&mut self) -> Result<Option<RunStreamEvent>, ClientError> {
        if !self.source.is_open() {
            self.source.open(self.cursor.run_id, self.cursor.params()).await?;
            return Ok(None);
        }
        match self.source.next().await? {
            Heard::Life => {
                self.cursor.heard();
                Ok(None)
            }
            Heard::Event(event) => {
                let accepted = self.cursor.accept(*event);
                if self.cursor.ended {
                    self.source.close();
                }
                accepted
            }
            Heard::End if self.cursor.may_end() => {
                self.cursor.ended = true;
                Ok(None)
            }
            Heard::End => {
                let detail = self.source.run(self.cursor.run_id).await?;
                self.cursor.end_at(&detail.run)?;
                Ok(None)
            }
        }
    }
}
