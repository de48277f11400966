//! Following a run's tape, live or from the journal, by position and without gaps.

use std::sync::Arc;

use palyra_common::{RunId, RunStreamEvent};
use tokio::sync::watch;

use super::Engine;
use super::live_tape::LiveTape;
use crate::error::AgentError;
use crate::tape;

/// Events handed out at once.
const BATCH: usize = 256;

/// Reads a tape from a position on; waits at its end while the run goes on.
pub struct TapeFollower {
    engine: Engine,
    run_id: RunId,
    next_seq: u64,
    live: Option<(Arc<LiveTape>, watch::Receiver<u64>)>,
    over: bool,
}

impl Engine {
    /// Follows a run from `from_seq` (1 is the first event) to its terminal event.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn follow(&self, run_id: RunId, from_seq: u64) -> Result<TapeFollower, AgentError> {
        // Subscribed before the journal is looked at: an event is then either in the journal or announced.
        let live = self.live(run_id).map(|run| {
            let watch = run.tape.watch();
            (run.tape, watch)
        });
        if live.is_none() {
            self.run(run_id).await?;
        }
        Ok(TapeFollower { engine: self.clone(), run_id, next_seq: from_seq.max(1), live, over: false })
    }

    /// Events of a tape from `from_seq` on, as far as they are durable now.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn tape(&self, run_id: RunId, from_seq: u64, limit: usize) -> Result<Vec<RunStreamEvent>, AgentError> {
        let events = self.stored_events(run_id, from_seq, limit).await?;
        if events.is_empty() {
            self.run(run_id).await?;
        }
        Ok(events)
    }

    async fn stored_events(
        &self,
        run_id: RunId,
        from_seq: u64,
        limit: usize,
    ) -> Result<Vec<RunStreamEvent>, AgentError> {
        let from_seq = from_seq.max(1);
        let records = self.shared.options.journal.read(move |reader| reader.run_tape(run_id, from_seq, limit)).await?;
        records.iter().map(|record| tape::event_of_record(run_id, record)).collect()
    }
}

impl TapeFollower {
    /// The next events, or `None` after the terminal one. Waits while there is nothing new.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<RunStreamEvent>>>, AgentError> {
        while !self.over {
            let events = self.available().await?;
            if let Some(last) = events.last() {
                self.next_seq = last.seq + 1;
                self.over = events.iter().any(|event| event.is_terminal());
                return Ok(Some(events));
            }
            match &mut self.live {
                // The driver is gone: what it wrote last is on the journal by now; without a terminal event the run waits for a restart.
                Some((_, watch)) => {
                    if watch.wait_for(|last| *last >= self.next_seq).await.is_err() {
                        self.live = None;
                    }
                }
                None => self.over = true,
            }
        }
        Ok(None)
    }

    async fn available(&self) -> Result<Vec<Arc<RunStreamEvent>>, AgentError> {
        if let Some(events) = self.live.as_ref().and_then(|(tape, _)| tape.since(self.next_seq, BATCH)) {
            return Ok(events);
        }
        let stored = self.engine.stored_events(self.run_id, self.next_seq, BATCH).await?;
        Ok(stored.into_iter().map(Arc::new).collect())
    }
}
