//! Connections to segment files, shared by the readers of a journal.
//!
//! Opening a file costs several times what reading a run from it does, so a connection stays open after it was used. Whoever reads takes one for as long as the
//! read lasts and gives it back; two that read the same segment at once have one each. What is idle is bounded, because each is a descriptor and a page cache.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::db;
use crate::error::JournalError;
use crate::layout::Layout;
use crate::segments::SegmentRow;

/// Idle connections. With segments of the usual size they cover the newest four million sealed records.
const MAX_IDLE: usize = 32;

/// The idle connections, the one that was used last at the end.
#[derive(Default)]
pub(crate) struct SegmentPool {
    idle: Mutex<VecDeque<(String, Connection)>>,
}

impl SegmentPool {
    /// Reads from a segment.
    pub(crate) fn with<T>(
        &self,
        layout: &Layout,
        segment: &SegmentRow,
        read: impl FnOnce(&Connection) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let connection = match self.take(&segment.file) {
            Some(connection) => connection,
            None => db::open_sealed(&layout.segment(&segment.file))?,
        };
        let result = read(&connection);
        // One that failed is opened anew: what it read before may be what is wrong with it.
        if result.is_ok() {
            self.give_back(&segment.file, connection);
        }
        result
    }

    fn take(&self, file: &str) -> Option<Connection> {
        let mut idle = self.lock();
        let at = idle.iter().rposition(|(name, _)| name == file)?;
        idle.remove(at).map(|(_, connection)| connection)
    }

    fn give_back(&self, file: &str, connection: Connection) {
        let mut idle = self.lock();
        idle.push_back((file.to_owned(), connection));
        let oldest = if idle.len() > MAX_IDLE { idle.pop_front() } else { None };
        drop(idle);
        // Closed without the lock.
        drop(oldest);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Connection)>> {
        // The list is whole between any two statements.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::{Digest, Timestamp};

    use super::*;

    fn segment(number: u64) -> SegmentRow {
        SegmentRow {
            first_seq: number,
            last_seq: number,
            file: SegmentRow::file_name(number, number),
            bytes: 0,
            file_digest: Digest::of(b""),
            first_prev_hash: Digest::of(b""),
            last_hash: Digest::of(b""),
            sealed_at: Timestamp(0),
        }
    }

    #[test]
    fn a_connection_is_used_again_unless_it_failed_and_few_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(directory.path());
        layout.create().unwrap();
        let pool = SegmentPool::default();
        for number in 1..=MAX_IDLE as u64 + 3 {
            let path = layout.segment(&segment(number).file);
            db::create_for_sealing(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
            pool.with(&layout, &segment(number), |_| Ok(())).unwrap();
        }
        assert_eq!(pool.lock().len(), MAX_IDLE);
        let newest = segment(MAX_IDLE as u64 + 3);
        // The file is gone, so only a connection that is open already can read it.
        std::fs::remove_file(layout.segment(&newest.file)).unwrap();
        pool.with(&layout, &newest, |connection| {
            connection.query_row("SELECT count(*) FROM t", [], |_| Ok(())).map_err(Into::into)
        })
        .unwrap();
        let failed: Result<(), _> = pool.with(&layout, &newest, |_| Err(JournalError::Closed));
        assert!(failed.is_err());
        assert!(pool.take(&newest.file).is_none(), "a connection that failed is used again");
    }
}
