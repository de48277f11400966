//! Following the tape of a run across broken connections and restarts of the daemon.
//!
//! INVARIANT: the positions that a [`TapeStream`] yields are consecutive, whatever the connection does; what it tells about calls under way, if
//! asked to, has no position. It remembers the
//! next position, asks for exactly that one after a break, drops what it has seen and treats a jump as a broken connection. It
//! gives up after a bounded number of attempts in a row that brought nothing, not even a heartbeat.

use std::time::Duration;

use palyra_common::{RunId, RunStreamEvent};

use crate::api::{RunTapeParams, paths};
use crate::client::Client;
use crate::error::ClientError;
use crate::ndjson::{Line, Lines, parse};
use crate::transport::{Call, open_stream};

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

const DOING: &str = "following a run";

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
enum Progress {
    Told,
    Left,
}

/// The events of one run, in order and without gaps.
pub struct TapeStream {
    client: Client,
    run_id: RunId,
    next_seq: u64,
    follow: Follow,
    progress: Progress,
    lines: Option<Lines>,
    reconnect: Reconnect,
    fruitless: u32,
    ended: bool,
}

impl TapeStream {
    pub(crate) fn new(client: Client, run_id: RunId, from_seq: u64, follow: Follow) -> Self {
        let reconnect = Reconnect::default();
        Self {
            client,
            run_id,
            next_seq: from_seq.max(1),
            follow,
            progress: Progress::Left,
            lines: None,
            reconnect,
            fruitless: 0,
            ended: false,
        }
    }

    /// The same stream with how calls get on in between: events for which [`RunStreamEvent::progress`] says something, which have no
    /// position of their own.
    #[must_use]
    pub fn with_progress(mut self) -> Self {
        self.progress = Progress::Told;
        self
    }

    /// The same stream with another stubbornness.
    #[must_use]
    pub fn reconnecting(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = reconnect;
        self
    }

    /// The position that comes next, from which another stream could go on.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The next event; `None` at the end. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<RunStreamEvent>, ClientError> {
        while !self.ended {
            match self.attempt().await {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(error) if worth_another_try(&error) => self.back_off(error).await?,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// One step: connects when there is no connection, reads one line otherwise.
    async fn attempt(&mut self) -> Result<Option<RunStreamEvent>, ClientError> {
        let Some(lines) = &mut self.lines else {
            let params = RunTapeParams {
                from_seq: Some(self.next_seq),
                limit: None,
                follow: Some(self.follow == Follow::UntilEnd),
                progress: (self.progress == Progress::Told).then_some(true),
            };
            let call = Call::get(DOING, paths::for_run(paths::RUN_TAPE, self.run_id)).query(&params)?;
            let answer = open_stream(self.client.endpoint(), call).await?;
            self.lines = Some(Lines::new(DOING, answer));
            return Ok(None);
        };
        match lines.next().await? {
            Line::Heartbeat => {
                self.fruitless = 0;
                Ok(None)
            }
            Line::Document(line) => self.accept(parse(DOING, &line)?),
            Line::End => self.end_of_stream().await,
        }
    }

    fn accept(&mut self, event: RunStreamEvent) -> Result<Option<RunStreamEvent>, ClientError> {
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
        if self.follow == Follow::UntilEnd && event.is_terminal() {
            self.ended = true;
            self.lines = None;
        }
        Ok(Some(event))
    }

    /// The daemon ended the stream. When following, that is right only if the run is over and everything was read; a daemon
    /// that is shutting down also ends its streams in good order.
    async fn end_of_stream(&mut self) -> Result<Option<RunStreamEvent>, ClientError> {
        if self.follow == Follow::UntilEnd {
            let detail = self.client.run(self.run_id).await?;
            if !detail.run.phase.is_terminal() || detail.run.last_seq >= self.next_seq {
                let source = "the stream ended before the run did".into();
                return Err(ClientError::Disconnected { doing: DOING, source });
            }
        }
        self.ended = true;
        self.lines = None;
        Ok(None)
    }

    async fn back_off(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.lines = None;
        self.fruitless += 1;
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

impl std::fmt::Debug for TapeStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TapeStream")
            .field("run_id", &self.run_id)
            .field("next_seq", &self.next_seq)
            .finish_non_exhaustive()
    }
}
