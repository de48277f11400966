//! Whether the tables are what the writer left, found out before anything is appended.
//!
//! After an orderly stop this takes constant time: the digests are bound to the end of the log by a keyed hash, and a note says what the file system said about the
//! database file when it was closed. Whoever wrote to the file since then, by whatever means, changed that. In every other case (a crash, a copy, an edit) all
//! rows of the derived tables are read and compared with their digests. A derived table that differs is built again from the log.

use std::fs;
use std::sync::Arc;

use rusqlite::Connection;

use crate::checkpoint::JournalId;
use crate::error::JournalError;
use crate::keys::JournalKey;
use crate::layout::{Layout, write_atomically};
use crate::projection::{self, Projection};
use crate::reader::Reader;
use crate::record::Head;
use crate::table_digests::{self, OWN, StoredDigests, TableDigests, scan};

/// Whether digests are to be expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The journal begins, an older release wrote it last, or it was restored: all is built from the log.
    No,
    Yes,
}

/// Notes that the database was closed in good order and nothing has been written since.
pub(crate) fn note_closed(layout: &Layout, key: &JournalKey) -> std::io::Result<()> {
    let seal = key.tables().file(&layout.database())?;
    write_atomically(&layout.closed_note(), 0o600, format!("{}\n", hex::encode(seal)).as_bytes())
}

/// Whether the database file is as it was closed. The note counts once: whatever comes next may write.
pub(crate) fn take_closed_note(layout: &Layout, key: &JournalKey) -> bool {
    let note = fs::read_to_string(layout.closed_note());
    if note.is_ok() && fs::remove_file(layout.closed_note()).is_err() {
        return false;
    }
    match (note, key.tables().file(&layout.database())) {
        (Ok(note), Ok(seal)) => {
            let nothing_logged = fs::metadata(layout.write_ahead_log()).map_or(true, |log| log.len() == 0);
            note.trim() == hex::encode(seal) && nothing_logged
        }
        _ => false,
    }
}

/// Compares the tables with their digests, builds again what is wrong, and watches them from then on. Returns the journal's own tables that are not as the
/// writer left them: these cannot be derived, and verification reports them.
pub(crate) fn check(
    connection: &Connection,
    reader: &Reader,
    projections: &[Arc<dyn Projection>],
    key: &JournalKey,
    (id, head): (JournalId, Head),
    (expected, untouched): (Expected, bool),
) -> Result<(TableDigests, Vec<String>), JournalError> {
    let digests = TableDigests::attach(connection, key.tables().clone())?;
    let stored = StoredDigests::read(connection)?;
    let genuine = expected == Expected::Yes && stored.are_genuine(key.tables(), id, head);
    if expected == Expected::Yes && !genuine {
        tracing::error!("the digests of the tables are not those that were stored; rebuilding all derived tables");
        table_digests::mark_tampered(connection)?;
    }
    let mut changed = Vec::new();
    for table in OWN {
        let start = match stored.of(table).filter(|_| expected == Expected::Yes) {
            // Its own digest stays what it was, so that verification finds the difference again.
            Some(sum) => {
                // All records are read by verification alone; their hashes are checked in other ways.
                if !untouched && *table != "records" && scan(connection, key.tables(), table)? != sum {
                    tracing::error!(table, "a table of the journal is not as the journal left it");
                    changed.push((*table).to_owned());
                }
                sum
            }
            None => scan(connection, key.tables(), table)?,
        };
        digests.watch(connection, table, start)?;
    }
    let mut wrong = Vec::new();
    for projection in projections {
        let known = projection.tables().iter().any(|table| stored.of(table).is_some());
        let mut is_right = genuine;
        for table in projection.tables().iter().filter(|_| genuine) {
            let sum = stored.of(table);
            let found = if untouched { sum } else { scan(connection, key.tables(), table).ok() };
            is_right &= sum.is_some() && sum == found;
        }
        if !is_right {
            if genuine && known {
                tracing::error!(
                    projection = projection.name(),
                    "a derived table is not what follows from the log; rebuilding it"
                );
            }
            wrong.push(projection.name());
            continue;
        }
        for table in projection.tables() {
            if let Some(sum) = stored.of(table) {
                digests.watch(connection, table, sum)?;
            }
        }
    }
    projection::reconcile(connection, reader, projections, &wrong, &digests, (id, head))?;
    Ok((digests, changed))
}
