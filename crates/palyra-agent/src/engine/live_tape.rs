//! The newest events of a run that is at work, shared by everyone who follows it.
//!
//! Followers keep a position, not a queue: a reader that stops reading costs nothing and stalls nobody. The window is bounded; what has fallen
//! out of it is read from the journal.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palyra_common::RunStreamEvent;
use tokio::sync::watch;

use super::progress::ProgressBoard;

/// Events kept in memory per run. A follower that lags further behind reads the journal.
const WINDOW: usize = 1024;

/// The live end of one run's tape.
#[derive(Debug)]
pub(crate) struct LiveTape {
    window: Mutex<VecDeque<Arc<RunStreamEvent>>>,
    /// Position of the newest durable event; closed when the run's driver is gone.
    last: watch::Sender<u64>,
    /// How the calls under way get on.
    pub(super) progress: Arc<ProgressBoard>,
}

impl LiveTape {
    /// A tape whose events up to `last_seq` are on the journal only.
    pub(crate) fn new(last_seq: u64) -> Arc<Self> {
        Arc::new(Self { window: Mutex::default(), last: watch::Sender::new(last_seq), progress: Arc::default() })
    }

    /// Adds events that have just become durable.
    pub(crate) fn publish(&self, events: Vec<RunStreamEvent>) {
        let Some(newest) = events.last().map(|event| event.seq) else { return };
        {
            let mut window = self.lock();
            window.extend(events.into_iter().map(Arc::new));
            while window.len() > WINDOW {
                window.pop_front();
            }
        }
        self.last.send_replace(newest);
    }

    /// Events from `from_seq` on, or `None` if they have fallen out of the window.
    pub(crate) fn since(&self, from_seq: u64, limit: usize) -> Option<Vec<Arc<RunStreamEvent>>> {
        let window = self.lock();
        let first = window.front().map_or(u64::MAX, |event| event.seq);
        if from_seq < first {
            // An empty window holds nothing, so everything up to `last` has to come from the journal.
            return (from_seq > *self.last.borrow()).then(Vec::new);
        }
        let skip = usize::try_from(from_seq - first).unwrap_or(usize::MAX);
        Some(window.iter().skip(skip).take(limit).cloned().collect())
    }

    /// Tells when the newest position changes.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<RunStreamEvent>>> {
        // The deque is whole between any two statements, so a panic elsewhere does not spoil it.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
