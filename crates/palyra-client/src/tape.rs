//! Following the tape of a run across broken connections and restarts of the daemon.
//!
//! INVARIANT: the positions that a [`TapeStream`] yields are consecutive, whatever the connection does; what it tells about calls under way, if
//! asked to, has no position. The position itself, and when to give up, is `cursor.rs`.

use palyra_common::{RunId, RunStreamEvent};

use crate::api::paths;
use crate::client::Client;
use crate::cursor::{Cursor, DOING, Follow, Progress, Reconnect};
use crate::error::ClientError;
use crate::ndjson::{Line, Lines, parse};
use crate::transport::{Call, open_stream};

/// The events of one run, in order and without gaps.
pub struct TapeStream {
    client: Client,
    cursor: Cursor,
    lines: Option<Lines>,
}

impl TapeStream {
    pub(crate) fn new(client: Client, run_id: RunId, from_seq: u64, follow: Follow) -> Self {
        Self { client, cursor: Cursor::new(run_id, from_seq, follow), lines: None }
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
    pub async fn next(&mut self) -> Result<Option<RunStreamEvent>, ClientError> {
        while !self.cursor.ended {
            match self.attempt().await {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(error) => {
                    self.lines = None;
                    self.cursor.back_off(error).await?;
                }
            }
        }
        self.lines = None;
        Ok(None)
    }

    /// One step: connects when there is no connection, reads one line otherwise.
    async fn attempt(&mut self) -> Result<Option<RunStreamEvent>, ClientError> {
        let Some(lines) = &mut self.lines else {
            let path = paths::for_run(paths::RUN_TAPE, self.cursor.run_id);
            let call = Call::get(DOING, path).query(&self.cursor.params())?;
            let answer = open_stream(self.client.endpoint(), call).await?;
            self.lines = Some(Lines::new(DOING, answer));
            return Ok(None);
        };
        match lines.next().await? {
            Line::Heartbeat => {
                self.cursor.heard();
                Ok(None)
            }
            Line::Document(line) => {
                let accepted = self.cursor.accept(parse(DOING, &line)?);
                if self.cursor.ended {
                    self.lines = None;
                }
                accepted
            }
            Line::End => self.end_of_stream().await,
        }
    }

    async fn end_of_stream(&mut self) -> Result<Option<RunStreamEvent>, ClientError> {
        if self.cursor.may_end() {
            self.cursor.ended = true;
        } else {
            let detail = self.client.run(self.cursor.run_id).await?;
            self.cursor.end_at(&detail.run)?;
        }
        Ok(None)
    }
}

impl std::fmt::Debug for TapeStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TapeStream")
            .field("run_id", &self.cursor.run_id)
            .field("next_seq", &self.cursor.next_seq)
            .finish_non_exhaustive()
    }
}
