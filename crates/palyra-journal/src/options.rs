//! How a journal is opened.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use palyra_common::{Clock, SystemClock};

use crate::projection::Projection;

/// Resolved options of a journal; [`JournalOptions::at`] gives the defaults.
#[derive(Clone)]
pub struct JournalOptions {
    /// The state root; everything the journal owns lies below it.
    pub root: PathBuf,
    /// A signed checkpoint is kept every so many records.
    pub checkpoint_every: u64,
    /// When more records than this are in the live table, the older half moves into a sealed segment.
    pub segment_records: u64,
    /// Payloads above this many bytes are kept as artifacts.
    pub inline_payload_bytes: usize,
    /// With less free space than this, new work is refused while running work may still record its outcome.
    pub min_free_bytes: u64,
    /// Threads that serve reads.
    pub readers: usize,
    /// Where the time of checkpoints comes from.
    pub clock: Arc<dyn Clock>,
    /// Tables derived from the log.
    pub projections: Vec<Arc<dyn Projection>>,
    /// Makes commits and reads fail or stop, for tests.
    pub faults: Option<Arc<dyn FaultInjector>>,
}

impl JournalOptions {
    /// The defaults for a state root.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            checkpoint_every: 1024,
            segment_records: 262_144,
            inline_payload_bytes: 256 * 1024,
            min_free_bytes: 64 * 1024 * 1024,
            readers: 4,
            clock: Arc::new(SystemClock),
            projections: Vec::new(),
            faults: None,
        }
    }

    /// Adds a projection.
    #[must_use]
    pub fn with_projection(mut self, projection: Arc<dyn Projection>) -> Self {
        self.projections.push(projection);
        self
    }
}

impl fmt::Debug for JournalOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalOptions")
            .field("root", &self.root)
            .field("checkpoint_every", &self.checkpoint_every)
            .field("segment_records", &self.segment_records)
            .field("inline_payload_bytes", &self.inline_payload_bytes)
            .field("min_free_bytes", &self.min_free_bytes)
            .field("readers", &self.readers)
            .field("projections", &self.projections.iter().map(|p| p.name()).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Called around every commit and before every read, so that tests can make the store fail or stop the process at a known point.
pub trait FaultInjector: Send + Sync {
    /// Before the `commit`-th commit since the journal was opened (from 1). An error refuses the whole group.
    ///
    /// # Errors
    /// Whatever the store shall appear to have failed with.
    fn before_commit(&self, commit: u64) -> io::Result<()>;

    /// After that commit is durable and before anybody is told.
    fn after_commit(&self, commit: u64) {
        let _ = commit;
    }

    /// Before a read of [`Journal::read`](crate::Journal::read) begins. An error fails that read alone.
    ///
    /// # Errors
    /// Whatever the store shall appear to have failed with.
    fn before_read(&self) -> io::Result<()> {
        Ok(())
    }
}
