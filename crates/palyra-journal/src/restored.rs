//! The note that a state was restored from a backup: what happened after the backup was made is not in it, so nothing may be repeated without asking.

use std::fs;
use std::io;
use std::path::Path;

use palyra_common::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::anchor::{self, AnchorState};
use crate::error::JournalError;
use crate::layout::{Layout, write_atomically};
use crate::offline;
use crate::record::NewRecord;
use crate::restores::{Acknowledgement, RESTORED_KIND, Restores};

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

/// A restore that no daemon was started on before.
#[derive(Debug, Clone)]
pub(crate) struct BegunRestore {
    pub(crate) note: RestoredNote,
    /// The key that signed last before.
    pub(crate) former_key: Option<Digest>,
    /// Whether a start that was cut short put it on record already.
    pub(crate) is_on_record: bool,
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

/// What [`accept_restore`] accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedRestore {
    /// How many records the backup had, if its work waited.
    pub records: Option<u64>,
    /// The key that signed before the restore, as far as that is known.
    pub former_key_id: Option<Digest>,
    /// The key that signs since, or will.
    pub key_id: Digest,
    /// Whether the restore was on the log already and is acknowledged with this. A restore that no daemon was started on is put on the log by the first start, which
    /// warns until it is acknowledged too.
    pub acknowledged: bool,
}

/// Says that the work of a restored state may go on, and acknowledges the restores on the log, with the signing key that they led to. Both happen at the next start.
///
/// # Errors
/// `restore_not_found` if the state was not restored or all of that was said before.
pub fn accept_restore(root: &Path) -> Result<AcceptedRestore, JournalError> {
    let layout = Layout::new(root);
    let note = read(&layout)?;
    let waiting = note.clone().filter(|note| !note.accepted);
    // Before its first start a restored database is as the backup had it, and what it says of restores is about earlier ones.
    let open = match &note {
        Some(note) if !note.started => Vec::new(),
        _ => Restores::unacknowledged(offline::open_read_only(root)?.connection())?,
    };
    let pending = Acknowledgement::read(&layout)?.map_or(0, |said| said.through_seq);
    let newest = open.last().filter(|restore| restore.seq > pending).cloned();
    if waiting.is_none() && newest.is_none() {
        return Err(JournalError::NoRestore { root: root.to_owned() });
    }
    if let Some(newest) = &newest {
        Acknowledgement { through_seq: newest.seq, key_id: newest.key_id }.write(&layout)?;
    }
    if let Some(note) = &waiting {
        write(&layout, &RestoredNote { accepted: true, ..note.clone() })?;
    }
    let records = waiting.as_ref().map(|note| note.records);
    let former = open.first().and_then(|restore| restore.former_key_id);
    match (newest, waiting) {
        (Some(newest), _) => {
            Ok(AcceptedRestore { records, former_key_id: former, key_id: newest.key_id, acknowledged: true })
        }
        (None, Some(note)) => {
            let former_key_id = match anchor::read(&layout.anchor())? {
                AnchorState::Says(said) => Some(said.key_id),
                AnchorState::Missing | AnchorState::Unreadable => None,
            };
            Ok(AcceptedRestore { records, former_key_id, key_id: note.key_id, acknowledged: false })
        }
        (None, None) => Err(JournalError::NoRestore { root: root.to_owned() }),
    }
}
