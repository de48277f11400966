//! Where a reader of a run's tape stands, whatever the tape comes over.
//!
//! INVARIANT: the positions that a cursor lets through are consecutive. What was seen is dropped, a jump is an error that is worth another connection,
//! and after a bounded number of attempts in a row without a sign of life the reader gives up.

use std::time::Duration;

use palyra_common::{RunId, RunStreamEvent};

use crate::api::{RunTapeParams, RunView};
use crate::error::ClientError;

/// How stubbornly a broken connection is taken up again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// Attempts in a row without a sign of life before giving up.
    pub attempts: u32,
    /// Wait after the first of them; doubled each time.
    pub first_wait: Duration,
    /// Longest wait.
    pub longest_wait: Duration,
}

impl Default for Reconnect {
    /// About fifteen seconds in all: long enough for a daemon to be restarted by hand or by a supervisor.
    fn default() -> Self {
        Self { attempts: 10, first_wait: Duration::from_millis(100), longest_wait: Duration::from_secs(3) }
    }
}

/// Whether a tape is read as far as it goes now, or until the run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Up to what is recorded now.
    No,
    /// Until the terminal status.
    UntilEnd,
}

/// Whether a stream also tells how calls get on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Told,
    Left,
}

pub(crate) const DOING: &str = "following a run";

/// The position of one reader.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) run_id: RunId,
    pub(crate) next_seq: u64,
    pub(crate) progress: Progress,
    pub(crate) reconnect: Reconnect,
    /// Nothing more will come.
    pub(crate) ended: bool,
    /// The newest event ended the run.
    over: bool,
    follow: Follow,
    fruitless: u32,
}

impl Cursor {
    pub(crate) fn new(run_id: RunId, from_seq: u64, follow: Follow) -> Self {
        Self {
            run_id,
            next_seq: from_seq.max(1),
            progress: Progress::Left,
            reconnect: Reconnect::default(),
            ended: false,
            over: false,
            follow,
            fruitless: 0,
        }
    }

    /// What to ask for on a new connection.
    pub(crate) fn params(&self) -> RunTapeParams {
        RunTapeParams {
            from_seq: Some(self.next_seq),
            limit: None,
            follow: Some(self.follow == Follow::UntilEnd),
            progress: (self.progress == Progress::Told).then_some(true),
        }
    }

    /// The other side is there.
    pub(crate) fn heard(&mut self) {
        self.fruitless = 0;
    }

    /// Takes an event: it is the next one, or one that was seen (`None`), or a sign that something is wrong.
    pub(crate) fn accept(&mut self, event: RunStreamEvent) -> Result<Option<RunStreamEvent>, ClientError> {
        if event.run_id != self.run_id {
            let message = format!("an event of run {} on the tape of run {}", event.run_id, self.run_id);
            return Err(ClientError::Malformed { doing: DOING, message });
        }
        if event.progress().is_some() {
            self.fruitless = 0;
            return Ok((self.progress == Progress::Told).then_some(event));
        }
        if event.seq < self.next_seq {
            return Ok(None);
        }
        if event.seq > self.next_seq {
            return Err(ClientError::TapeGap { run_id: self.run_id, expected: self.next_seq, found: event.seq });
        }
        self.next_seq += 1;
        self.fruitless = 0;
        self.over = event.is_terminal();
        Ok(Some(event))
    }

    /// Whether the end of a stream may be the end of the tape without asking how the run stands.
    ///
    /// A run that failed may have been taken up again, so an event that ended it is the last one only if the stream ends there too.
    pub(crate) fn may_end(&self) -> bool {
        self.follow == Follow::No || self.over
    }

    /// The daemon ended the stream. When following, that is right only if the run is over and everything was read; a daemon
    /// that is shutting down also ends its streams in good order.
    pub(crate) fn end_at(&mut self, run: &RunView) -> Result<(), ClientError> {
        if !run.phase.is_terminal() || run.last_seq >= self.next_seq {
            let source = "the stream ended before the run did".into();
            return Err(ClientError::Disconnected { doing: DOING, source });
        }
        self.ended = true;
        Ok(())
    }

    /// Waits before the next attempt, or gives the error back when there were enough of them.
    pub(crate) async fn back_off(&mut self, error: ClientError) -> Result<(), ClientError> {
        if !worth_another_try(&error) {
            return Err(error);
        }
        self.fruitless += 1;
        if self.over {
            // The run was over when the stream broke. One more look tells whether it was taken up again; without an answer it was not.
            self.ended = self.fruitless > 1;
            return Ok(());
        }
        if self.fruitless >= self.reconnect.attempts {
            self.ended = true;
            return Err(error);
        }
        let doubled = self.reconnect.first_wait.saturating_mul(1 << (self.fruitless - 1).min(16));
        tokio::time::sleep(doubled.min(self.reconnect.longest_wait)).await;
        Ok(())
    }
}

fn worth_another_try(error: &ClientError) -> bool {
    match error {
        ClientError::TapeGap { .. } => true,
        ClientError::Refused(envelope) => envelope.retryable,
        other => other.is_connection_trouble(),
    }
}
