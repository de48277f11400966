//! Following a run's tape, live or from the journal, by position and without gaps.

use std::sync::Arc;

use palyra_common::{CallProgress, RunId, RunLifecyclePhase, RunStatus, RunStreamBody, RunStreamEvent};
use palyra_journal::{JournalError, Reader, StoredRecord};
use tokio::sync::watch;
use tokio::time::Instant;

use super::Engine;
use super::live_tape::LiveTape;
use super::page::PageRoom;
use super::progress::{PACE, Seen};
use crate::error::AgentError;
use crate::tape;

/// Events handed out at once.
const BATCH: usize = 256;
/// Records that are read before anything is known about their size; a record may hold megabytes, so few.
const FIRST_READ: usize = 4;

/// Reads a tape from a position on; waits at its end while the run goes on.
pub struct TapeFollower {
    engine: Engine,
    run_id: RunId,
    next_seq: u64,
    live: Option<(Arc<LiveTape>, watch::Receiver<u64>)>,
    over: bool,
    /// Whether the newest event that was read ended the run. It went on if more follows than what hooks said about the end.
    ended: bool,
    seen: Seen,
    /// When progress may be told again.
    not_before: Instant,
}

/// What a follower gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// Events of the tape, in order and without gaps.
    Events(Vec<Arc<RunStreamEvent>>),
    /// How calls get on. Not on the tape, and with the position of the event before.
    Progress(Vec<RunStreamEvent>),
}

impl Engine {
    /// Follows a run from `from_seq` (1 is the first event) to its last event, which is terminal.
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
        Ok(TapeFollower {
            engine: self.clone(),
            run_id,
            next_seq: from_seq.max(1),
            live,
            over: false,
            ended: false,
            seen: Seen::default(),
            not_before: Instant::now(),
        })
    }

    /// Events of a tape from `from_seq` on, as far as they are durable now: at most so many, and no more than fit a page. None only at the end.
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
        let records = self.shared.options.journal.read(move |reader| page(reader, run_id, from_seq, limit)).await?;
        records.iter().map(|record| tape::event_of_record(run_id, record)).collect()
    }
}

impl TapeFollower {
    /// The next events, or `None` after the terminal one. Waits while there is nothing new.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<RunStreamEvent>>>, AgentError> {
        loop {
            match self.step(Attention::TapeAlone).await? {
                None => return Ok(None),
                Some(Followed::Events(events)) => return Ok(Some(events)),
                Some(Followed::Progress(_)) => {}
            }
        }
    }

    /// The next events, or how calls get on meanwhile; `None` after the terminal event.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn next_with_progress(&mut self) -> Result<Option<Followed>, AgentError> {
        self.step(Attention::TapeAndProgress).await
    }

    /// Waits until the next step has something to give, or the end, without reading any of it: whoever bounds what readers hold asks first. Says what there is to
    /// read; progress may turn out to be nothing new. Cancel-safe.
    pub async fn ready(&mut self, attention: Attention) -> News {
        if self.over || self.ended {
            return News::Tape;
        }
        let (next_seq, not_before, seen) = (self.next_seq, self.not_before, self.seen.changes);
        let Some((tape, watch)) = &mut self.live else { return News::Tape };
        tokio::select! {
            biased;
            _ = watch.wait_for(|last| *last >= next_seq) => News::Tape,
            () = progress_after(tape, seen, not_before), if attention == Attention::TapeAndProgress => News::Progress,
        }
    }

    async fn step(&mut self, attention: Attention) -> Result<Option<Followed>, AgentError> {
        while !self.over {
            let events = self.available().await?;
            if let Some(last) = events.last() {
                self.next_seq = last.seq + 1;
                // What hooks said about the end stands after it and changes nothing about it; both may be read at once.
                if let Some(telling) = events.iter().rev().find(|event| !is_afterword(event)) {
                    self.ended = telling.is_terminal();
                }
                return Ok(Some(Followed::Events(events)));
            }
            if self.ended {
                self.over = true;
                break;
            }
            let (next_seq, not_before) = (self.next_seq, self.not_before);
            let Some((tape, watch)) = &mut self.live else {
                self.over = true;
                break;
            };
            let woken = tokio::select! {
                biased;
                newer = watch.wait_for(|last| *last >= next_seq) => if newer.is_ok() { Woken::Tape } else { Woken::End },
                () = progress_after(tape, self.seen.changes, not_before), if attention == Attention::TapeAndProgress => {
                    Woken::Progress(self.seen.news(&tape.progress, &self.engine.shared.options.safety))
                }
            };
            match woken {
                Woken::Tape => {}
                // The driver is gone: what it wrote last is on the journal by now; without a terminal event the run waits for a restart.
                Woken::End => self.live = None,
                Woken::Progress(news) => {
                    self.not_before = Instant::now() + PACE;
                    if !news.is_empty() {
                        return Ok(Some(Followed::Progress(news.into_iter().map(|news| self.told(news)).collect())));
                    }
                }
            }
        }
        Ok(None)
    }

    fn told(&self, progress: CallProgress) -> RunStreamEvent {
        RunStreamEvent {
            run_id: self.run_id,
            seq: self.next_seq.saturating_sub(1),
            at: self.engine.shared.options.clock.now(),
            body: RunStreamBody::Status(RunStatus {
                progress: Some(progress),
                ..RunStatus::entered(RunLifecyclePhase::Running)
            }),
        }
    }

    async fn available(&self) -> Result<Vec<Arc<RunStreamEvent>>, AgentError> {
        if let Some(events) = self.live.as_ref().and_then(|(tape, _)| tape.since(self.next_seq, PageRoom::new(BATCH))) {
            return Ok(events);
        }
        let stored = self.engine.stored_events(self.run_id, self.next_seq, BATCH).await?;
        Ok(stored.into_iter().map(Arc::new).collect())
    }
}

/// Whether an event is only about the end of the run.
fn is_afterword(event: &RunStreamEvent) -> bool {
    matches!(&event.body, RunStreamBody::JournalEvent(event) if event.kind == tape::kind::HOOKS_NOTED)
}

/// One page of a tape, read in steps that are fitted to the sizes seen so far: what does not fit the page is hardly read at all.
fn page(reader: &Reader, run_id: RunId, from_seq: u64, limit: usize) -> Result<Vec<StoredRecord>, JournalError> {
    let mut room = PageRoom::new(limit);
    let mut records: Vec<StoredRecord> = Vec::new();
    let (mut bytes, mut next, mut step) = (0_usize, from_seq, limit.min(FIRST_READ));
    while step > 0 {
        let read = reader.run_tape(run_id, next, step)?;
        let found = read.len();
        for record in read {
            if !room.takes(record.payload.len()) {
                return Ok(records);
            }
            bytes += record.payload.len();
            next = record.run_seq.map_or(next, |seq| seq + 1);
            records.push(record);
        }
        if found < step {
            break;
        }
        step = room.more_of(bytes / records.len().max(1));
    }
    Ok(records)
}

/// What a follower listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// Events of the tape.
    TapeAlone,
    /// Also how calls that are under way get on.
    TapeAndProgress,
}

/// What there is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// Events, or the end of the tape.
    Tape,
    /// How calls get on.
    Progress,
}

/// What made a follower stop waiting.
enum Woken {
    Tape,
    End,
    Progress(Vec<CallProgress>),
}

/// Waits for something new to tell, and for the time at which it may be told.
async fn progress_after(tape: &LiveTape, seen: u64, not_before: Instant) {
    let mut changes = tape.progress.watch();
    // The board outlives this call, so there is always somebody who could change it.
    if changes.wait_for(|changes| *changes > seen).await.is_err() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep_until(not_before).await;
}
