//! The note that a state was restored from a backup: what happened after the backup was made is not in it, so nothing may be repeated without asking.

use std::fs;
use std::io;
use std::path::Path;

use palyra_common::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::JournalError;
use crate::layout::{Layout, write_atomically};
use crate::record::NewRecord;

/// See the module. Lies in the state root until the restore is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredNote {
    /// When it was restored.
    pub at: Timestamp,
    /// How many records the backup had.
    pub records: u64,
    /// The key that signs from then on.
    pub key_id: Digest,
    /// Whether a daemon was started on it since.
    pub started: bool,
    /// Whether somebody said that work may go on.
    pub accepted: bool,
}

/// The kind of the record that a journal was restored, appended at the first start after it.
pub const RESTORED_KIND: &str = "journal.restored";

/// A restore that no daemon was started on before.
#[derive(Debug, Clone)]
pub(crate) struct BegunRestore {
    pub(crate) note: RestoredNote,
    /// The key that signed last before.
    pub(crate) former_key: Option<Digest>,
}

impl BegunRestore {
    /// The record of it. The note can be written by whoever can write to the state root, and lets another key sign from now on; the log keeps that it happened.
    pub(crate) fn record(&self, at: Timestamp) -> Result<NewRecord, JournalError> {
        let key_changed = self.former_key.is_some_and(|former| former != self.note.key_id);
        let payload = serde_json::json!({
            "restored_at": self.note.at,
            "records": self.note.records,
            "key_id": self.note.key_id,
            "former_key_id": self.former_key,
            "key_changed": key_changed,
        });
        let payload = serde_json::to_vec(&payload).map_err(|error| JournalError::invalid(error.to_string()))?;
        Ok(NewRecord::new(RESTORED_KIND, at, payload))
    }
}

/// Notes that a daemon was started on a restored state.
pub(crate) fn note_started(layout: &Layout, note: &RestoredNote) -> Result<(), JournalError> {
    write(layout, &RestoredNote { started: true, ..note.clone() })
}

pub(crate) fn read(layout: &Layout) -> Result<Option<RestoredNote>, JournalError> {
    let path = layout.restored_note();
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| JournalError::file("read", path, e.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(JournalError::file("read", path, error)),
    }
}

pub(crate) fn write(layout: &Layout, note: &RestoredNote) -> Result<(), JournalError> {
    let path = layout.restored_note();
    let bytes = serde_json::to_vec_pretty(note).map_err(|e| JournalError::file("write", &path, e.into()))?;
    write_atomically(&path, 0o600, &bytes).map_err(|e| JournalError::file("write", path, e))
}

/// The note of a state that was restored and whose work waits for somebody's word.
///
/// # Errors
/// If the note cannot be read.
pub fn awaiting_acceptance(root: &Path) -> Result<Option<RestoredNote>, JournalError> {
    Ok(read(&Layout::new(root))?.filter(|note| !note.accepted))
}

/// Says that the work of a restored state may go on. It does at the next start.
///
/// # Errors
/// `journal_not_found` if the state was not restored or the restore was accepted before.
pub fn accept_restore(root: &Path) -> Result<RestoredNote, JournalError> {
    let layout = Layout::new(root);
    let Some(note) = awaiting_acceptance(root)? else {
        return Err(JournalError::NoRestore { root: root.to_owned() });
    };
    let accepted = RestoredNote { accepted: true, ..note };
    write(&layout, &accepted)?;
    Ok(accepted)
}
