//! What happens when a journal cannot be trusted: it is set aside under a new name, a marker says why, and nothing is written
//! until a person restores a backup or accepts the loss.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use palyra_common::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::JournalError;
use crate::layout::{Layout, create_private_dir, sync_dir, write_atomically};
use crate::lock::WriterLock;
use crate::position::Position;

/// The marker that stands between a damaged journal and a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamageMarker {
    /// When the damage was found.
    pub at: Timestamp,
    /// The first place where something is wrong.
    pub position: Position,
    /// What is wrong there.
    pub reason: String,
    /// Where the damaged database lies now, if it was there at all.
    pub set_aside: Option<PathBuf>,
}

impl From<DamageMarker> for JournalError {
    fn from(marker: DamageMarker) -> Self {
        Self::Damaged { position: marker.position, reason: marker.reason, set_aside: marker.set_aside }
    }
}

/// The marker of a state, if it has one. A marker that cannot be read still marks.
pub(crate) fn marker(layout: &Layout) -> Result<Option<DamageMarker>, JournalError> {
    let path = layout.damage_marker();
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).unwrap_or_else(|_| DamageMarker {
            at: Timestamp(0),
            position: Position::File { file: path },
            reason: "damage was found earlier, but its report cannot be read".to_owned(),
            set_aside: None,
        }))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(JournalError::file("read", path, error)),
    }
}

/// Sets the database aside and leaves the marker. The marker comes first: a crash in between must not look like a
/// state that never had a journal.
pub(crate) fn set_aside(layout: &Layout, at: Timestamp, position: Position, reason: String) -> JournalError {
    let database = layout.database();
    let aside = with_suffix(&database, &format!(".damaged-{}", compact(at)));
    let mut marker = DamageMarker { at, position, reason, set_aside: database.exists().then(|| aside.clone()) };
    let write = |marker: &DamageMarker| {
        let bytes = serde_json::to_vec_pretty(marker).unwrap_or_default();
        write_atomically(&layout.damage_marker(), 0o600, &bytes)
    };
    if let Err(error) = write(&marker) {
        // Without a marker nothing may be moved; the next start finds the same damage again.
        tracing::error!(%error, "the damage marker could not be written");
        marker.set_aside = None;
        return marker.into();
    }
    for suffix in ["", "-wal", "-shm"] {
        let from = with_suffix(&database, suffix);
        if from.exists()
            && let Err(error) = fs::rename(&from, with_suffix(&aside, suffix))
        {
            tracing::error!(%error, file = %from.display(), "a damaged file could not be moved aside");
        }
    }
    let _ = sync_dir(&layout.journal_dir());
    marker.into()
}

/// Accepts that the records of a damaged journal are lost: what is left of it moves to `journal/lost-<time>/`, and the next
/// start begins a new journal. Nothing is deleted. Returns where the remains lie.
///
/// # Errors
/// `loss_not_found` if no damage was marked, `journal_not_found` if there never was a journal, `state_in_use` if a daemon runs.
pub fn accept_loss(root: &Path, at: Timestamp) -> Result<PathBuf, JournalError> {
    let layout = Layout::new(root);
    // A journal that was deleted as a whole leaves no marker before the next start, but it leaves its anchor or its key.
    let left = layout.anchor().exists() || layout.outer_anchor().exists() || layout.public_keys().exists();
    let deleted = !layout.database().exists() && left && !layout.accepted_loss().exists();
    if marker(&layout)?.is_none() && !deleted {
        // After a loss was accepted the next start begins a new journal, so there is nothing left to accept either.
        return Err(match layout.database().exists() || layout.accepted_loss().exists() {
            true => JournalError::NoLoss { root: root.to_owned() },
            false => JournalError::NoJournal { root: root.to_owned() },
        });
    }
    layout.create().map_err(|e| JournalError::file("create", root, e))?;
    let _lock = WriterLock::take(&layout)?;
    let remains = move_remains(&layout, at)?;
    let note = layout.accepted_loss();
    write_atomically(&note, 0o600, format!("{}\n", at.to_rfc3339()).as_bytes())
        .map_err(|e| JournalError::file("write", note, e))?;
    Ok(remains)
}

/// Moves everything of a former journal out of the way, the marker last.
pub(crate) fn move_remains(layout: &Layout, at: Timestamp) -> Result<PathBuf, JournalError> {
    let dir = layout.journal_dir();
    let lost = dir.join(format!("lost-{}", compact(at)));
    create_private_dir(&lost).map_err(|e| JournalError::file("create", &lost, e))?;
    let failed = |e| JournalError::file("move", &dir, e);
    let marker = layout.damage_marker();
    let mut marked = false;
    for entry in fs::read_dir(&dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let kept = entry.path() == layout.lock() || name.to_string_lossy().starts_with("lost-");
        if entry.path() == marker {
            marked = true;
        } else if !kept {
            fs::rename(entry.path(), lost.join(&name)).map_err(failed)?;
        }
    }
    let outer = layout.outer_anchor();
    if outer.exists() {
        fs::rename(&outer, lost.join("journal.anchor")).map_err(failed)?;
    }
    if marked {
        fs::rename(&marker, lost.join("damaged.json")).map_err(failed)?;
    }
    sync_dir(&lost).and_then(|()| sync_dir(&dir)).map_err(failed)?;
    Ok(lost)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A time as part of a file name: `20261115T080910123Z`.
fn compact(at: Timestamp) -> String {
    at.to_rfc3339().chars().filter(|c| c.is_ascii_alphanumeric()).collect()
}
