//! A record that goes with whatever a piece of work commits first.
//!
//! Whoever has to know later whether some work had any effect puts a record into its scope. It becomes durable in the same commit as the first batch that the work
//! appends, and never without it: the record is there exactly if the work changed anything.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::record::NewRecord;

tokio::task_local! {
    static SCOPE: FirstCommit;
}

/// A record that waits for the first commit of some work.
#[derive(Debug, Clone)]
pub struct FirstCommit(Arc<Mutex<Option<NewRecord>>>);

impl FirstCommit {
    /// Waits with this record.
    #[must_use]
    pub fn with(record: NewRecord) -> Self {
        Self(Arc::new(Mutex::new(Some(record))))
    }

    /// The scope that the current task works in. A task that it spawns works in no scope unless it is put into this one.
    #[must_use]
    pub fn current() -> Option<Self> {
        SCOPE.try_with(Clone::clone).ok()
    }

    /// Does `work` in this scope.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        SCOPE.scope(self, work).await
    }

    /// Does `work` in a scope without a record: what it commits does not count.
    pub async fn exempt<F: Future>(work: F) -> F::Output {
        Self(Arc::default()).scope(work).await
    }

    /// Takes the record, for a batch that another task appends or that is appended now. Whoever cannot append it puts it back.
    #[must_use]
    pub fn take(&self) -> Option<NewRecord> {
        self.lock().take()
    }

    /// Puts a record back that was taken and not appended.
    pub fn put_back(&self, record: NewRecord) {
        self.lock().get_or_insert(record);
    }

    fn lock(&self) -> MutexGuard<'_, Option<NewRecord>> {
        // One value that is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::Timestamp;

    use super::*;
    use crate::{Journal, JournalOptions};

    fn record(kind: &'static str) -> NewRecord {
        NewRecord::new(kind, Timestamp(1), b"{}".to_vec())
    }

    #[tokio::test]
    async fn a_record_goes_with_the_first_commit_alone() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(JournalOptions::at(directory.path())).unwrap();
        let scope = FirstCommit::with(record("test.mark"));
        let work = async {
            FirstCommit::exempt(journal.append(vec![record("test.other")])).await.unwrap();
            assert!(journal.append(Vec::new()).await.is_err(), "an empty batch is refused with or without a mark");
            journal.append(vec![record("test.first")]).await.unwrap();
            journal.append(vec![record("test.second")]).await.unwrap()
        };
        assert_eq!(scope.scope(work).await.last_seq, 4);
        let kinds = journal
            .read(|reader| (1..=4).map(|seq| Ok(reader.record(seq)?.kind.to_string())).collect::<Result<Vec<_>, _>>());
        assert_eq!(kinds.await.unwrap(), ["test.other", "test.mark", "test.first", "test.second"]);
    }
}
