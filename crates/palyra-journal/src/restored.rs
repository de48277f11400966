//! The note that a state was restored from a backup: what happened after the backup was made is not in it, so nothing may be repeated without asking.

use std::fs;
use std::io;
use std::path::Path;

use palyra_common::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::JournalError;
use crate::layout::{Layout, write_atomically};

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
