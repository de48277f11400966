//! Reading a journal without being its writer: beside a running daemon, or when none runs.

use std::path::Path;

use crate::damage;
use crate::db;
use crate::error::JournalError;
use crate::layout::Layout;
use crate::reader::Reader;

/// A reader over one snapshot of the log below a state root. It sees what was committed when it was opened.
///
/// # Errors
/// `journal_not_found`, `journal_damaged`, `journal_schema_newer`, or what the file system said.
pub fn open_read_only(root: &Path) -> Result<Reader, JournalError> {
    let layout = Layout::new(root);
    if let Some(marker) = damage::marker(&layout)? {
        return Err(marker.into());
    }
    if !layout.database().exists() {
        return Err(JournalError::NoJournal { root: root.to_owned() });
    }
    let reader = Reader::open(&layout)?;
    let (found, known) = (db::version(reader.connection())?, db::newest_version());
    if found < known {
        return Err(JournalError::SchemaOlder { found, known });
    }
    if found > known {
        return Err(JournalError::SchemaNewer { found, known });
    }
    // Reading anything begins the snapshot.
    reader.connection().execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
    Ok(reader)
}
