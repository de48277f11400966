//! The newest events of a run that is at work, shared by everyone who follows it.
//!
//! Followers keep a position, not a queue: a reader that stops reading costs nothing and stalls nobody. The window is bounded in events and in bytes;
//! what has fallen out of it is read from the journal.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palyra_common::RunStreamEvent;
use tokio::sync::watch;

use super::page::PageRoom;
use super::progress::ProgressBoard;

/// Events kept in memory per run. A follower that lags further behind reads the journal.
const WINDOW: usize = 1024;
/// Bytes kept in memory per run, beside the newest event: a tool that prints megabytes at each call would otherwise fill the window with gigabytes.
const WINDOW_BYTES: usize = 1024 * 1024;

/// An event, and the bytes of its record as a measure of what it costs to hold it.
#[derive(Debug)]
pub(crate) struct Weighed {
    pub(crate) event: RunStreamEvent,
    pub(crate) bytes: usize,
}

/// The live end of one run's tape.
#[derive(Debug)]
pub(crate) struct LiveTape {
    window: Mutex<Window>,
    /// Position of the newest durable event; closed when the run's driver is gone.
    last: watch::Sender<u64>,
    /// How the calls under way get on.
    pub(super) progress: Arc<ProgressBoard>,
}

/// INVARIANT: positions follow each other without a gap, and `bytes` is the sum over `events`.
#[derive(Debug, Default)]
struct Window {
    events: VecDeque<(Arc<RunStreamEvent>, usize)>,
    bytes: usize,
}

impl Window {
    fn push(&mut self, Weighed { event, bytes }: Weighed) {
        self.events.push_back((Arc::new(event), bytes));
        self.bytes = self.bytes.saturating_add(bytes);
        while self.events.len() > 1 && (self.events.len() > WINDOW || self.bytes > WINDOW_BYTES) {
            if let Some((_, bytes)) = self.events.pop_front() {
                self.bytes = self.bytes.saturating_sub(bytes);
            }
        }
    }
}

impl LiveTape {
    /// A tape whose events up to `last_seq` are on the journal only.
    pub(crate) fn new(last_seq: u64) -> Arc<Self> {
        Arc::new(Self { window: Mutex::default(), last: watch::Sender::new(last_seq), progress: Arc::default() })
    }

    /// Adds events that have just become durable.
    pub(crate) fn publish(&self, events: Vec<Weighed>) {
        let Some(newest) = events.last().map(|weighed| weighed.event.seq) else { return };
        {
            let mut window = self.lock();
            for weighed in events {
                window.push(weighed);
            }
        }
        self.last.send_replace(newest);
    }

    /// Events from `from_seq` on, as many as fit a page, or `None` if they have fallen out of the window.
    pub(crate) fn since(&self, from_seq: u64, mut room: PageRoom) -> Option<Vec<Arc<RunStreamEvent>>> {
        let window = self.lock();
        let first = window.events.front().map_or(u64::MAX, |(event, _)| event.seq);
        if from_seq < first {
            // An empty window holds nothing, so everything up to `last` has to come from the journal.
            return (from_seq > *self.last.borrow()).then(Vec::new);
        }
        let skip = usize::try_from(from_seq - first).unwrap_or(usize::MAX);
        let page = window.events.iter().skip(skip).take_while(|(_, bytes)| room.takes(*bytes));
        Some(page.map(|(event, _)| Arc::clone(event)).collect())
    }

    /// Position of the newest durable event.
    pub(crate) fn last_seq(&self) -> u64 {
        *self.last.borrow()
    }

    /// Tells when the newest position changes.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        // The window is whole between any two statements that could panic, so a panic elsewhere does not spoil it.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::{RunId, RunLifecyclePhase, RunStatus, RunStreamBody, Timestamp};

    use super::super::page::PAGE_BYTES;
    use super::*;

    fn published(sizes: &[usize]) -> Arc<LiveTape> {
        let tape = LiveTape::new(0);
        let event = |seq| RunStreamEvent {
            run_id: RunId::from_u128(1),
            seq,
            at: Timestamp(0),
            body: RunStreamBody::Status(RunStatus::entered(RunLifecyclePhase::Running)),
        };
        tape.publish((1..).zip(sizes).map(|(seq, bytes)| Weighed { event: event(seq), bytes: *bytes }).collect());
        tape
    }

    fn page(tape: &LiveTape, from_seq: u64) -> Option<Vec<u64>> {
        let page = tape.since(from_seq, PageRoom::new(256))?;
        Some(page.iter().map(|event| event.seq).collect())
    }

    #[test]
    fn a_page_ends_where_its_bytes_do_and_a_large_event_has_one_to_itself() {
        let half = PAGE_BYTES / 2;
        let tape = published(&[half, half, 1, PAGE_BYTES + 1, 1, half]);
        assert_eq!(page(&tape, 1), Some(vec![1, 2]));
        assert_eq!(page(&tape, 3), Some(vec![3]));
        assert_eq!(page(&tape, 4), Some(vec![4]));
        assert_eq!(page(&tape, 5), Some(vec![5, 6]));
        assert_eq!(page(&tape, 7), Some(vec![]));
    }

    #[test]
    fn what_is_too_much_to_hold_is_left_to_the_journal() {
        let tape = published(&[WINDOW_BYTES / 2, WINDOW_BYTES / 2, 1]);
        assert_eq!(page(&tape, 1), None);
        assert_eq!(page(&tape, 2), Some(vec![2]));
        let tape = published(&[1, 2 * WINDOW_BYTES]);
        assert_eq!(page(&tape, 1), None);
        assert_eq!(page(&tape, 2), Some(vec![2]), "the newest is held whatever it weighs");
        let tape = published(&[1; WINDOW + 1]);
        assert_eq!(page(&tape, 1), None);
        assert_eq!(page(&tape, 2).map(|page| page.len()), Some(256));
        assert_eq!(tape.lock().bytes, WINDOW);
    }
}
