//! A journal that fails when it is told to.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use palyra_journal::FaultInjector;

/// Refuses every commit while it is switched on, as a full disk does.
///
/// Shared with the journal through `JournalOptions::faults`; the test keeps a handle and turns it on and off.
#[derive(Debug, Default)]
pub struct FailingStore {
    failing_from: AtomicU64,
    refused: AtomicU64,
    commits: AtomicU64,
}

impl FailingStore {
    /// A store that works until it is told to fail.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fails from the next commit on.
    pub fn fail(&self) {
        self.failing_from.store(1, Ordering::SeqCst);
    }

    /// Fails from the `commit`-th commit since the journal was opened on, counted from 1.
    pub fn fail_from(&self, commit: u64) {
        self.failing_from.store(commit.max(1), Ordering::SeqCst);
    }

    /// Works again.
    pub fn recover(&self) {
        self.failing_from.store(0, Ordering::SeqCst);
    }

    /// How many commits were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    /// How many commits became durable.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }
}

impl FaultInjector for FailingStore {
    fn before_commit(&self, commit: u64) -> io::Result<()> {
        let from = self.failing_from.load(Ordering::SeqCst);
        if from == 0 || commit < from {
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::SeqCst);
        Err(io::Error::new(io::ErrorKind::StorageFull, "the store was told to fail"))
    }

    fn after_commit(&self, _commit: u64) {
        self.commits.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use palyra_common::{Timestamp, ToStableError as _};
    use palyra_journal::{Journal, JournalOptions, NewRecord};

    use super::*;

    #[test]
    fn a_failing_store_refuses_whole_batches_and_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(FailingStore::new());
        let options = JournalOptions { faults: Some(store.clone()), ..JournalOptions::at(directory.path()) };
        let journal = Journal::open(options).unwrap();
        let batch = || vec![NewRecord::new("test.record", Timestamp(1), b"{}".to_vec()); 2];
        assert_eq!(journal.append_blocking(batch()).unwrap().last_seq, 2);
        store.fail();
        let error = journal.append_blocking(batch()).unwrap_err().to_stable();
        assert_eq!(error.code, "disk_full", "{error:?}");
        assert!(store.refused() > 0);
        store.recover();
        assert_eq!(journal.append_blocking(batch()).unwrap().last_seq, 4, "the refused batch left a gap");
        assert_eq!(store.commits(), 2);
    }
}
