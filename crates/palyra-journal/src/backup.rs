//! Online backup and restore.
//!
//! A backup is a state root of its own, without the private key: the database copied through SQLite's backup interface in one
//! read transaction, the segments that copy names, the artifacts, the public keys, and an anchor signed for exactly that copy. Restoring verifies
//! first, refuses to overwrite, and makes a new signing key unless the target still has one.

use std::fs;
use std::path::{Path, PathBuf};

use palyra_common::{Clock, Timestamp};
use rusqlite::backup::{Backup, StepResult};
use serde::{Deserialize, Serialize};

use crate::anchor;
use crate::chain::Chain;
use crate::damage;
use crate::db;
use crate::error::JournalError;
use crate::keys::{self, JournalKey};
use crate::layout::{Layout, sync_dir, write_atomically};
use crate::lock::WriterLock;
use crate::reader::Reader;
use crate::restored::{self, RestoredNote};
use crate::segments;
use crate::verify::{RESTORE_UNACKNOWLEDGED, VerifyOptions, verify};

/// What a backup or a restore did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupReport {
    /// Records in the copy.
    pub records: u64,
    /// Segments in the copy.
    pub segments: u64,
    /// Artifacts in the copy.
    pub artifacts: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Where the copy is.
    pub path: PathBuf,
    /// What is not in the copy: the rest of the state root, and what whoever made it named besides. A restore repeats what its backup left out.
    #[serde(default)]
    pub left_out: Vec<String>,
}

/// In a backup: what it left out, for whoever restores it.
const LEFT_OUT_NOTE: &str = "left-out.json";

/// What a backup holds, or what is made anew at a start and means nothing elsewhere.
const NOT_LEFT_OUT: &[&str] = &[
    "journal",
    "artifacts",
    "journal.anchor",
    "restored.json",
    "restore-accepted.json",
    "logs",
    "palyrad.sock",
    "palyrad.lock",
    "palyrad.pid",
    "local.token",
    "http.addr",
    "quic.addr",
    "grpc.addr",
    "processes",
    "reserve",
    "providers-answered.json",
];

/// The rest of a state root, by name.
fn left_out(layout: &Layout) -> Result<Vec<String>, JournalError> {
    let mut names = Vec::new();
    for path in list(&layout.root)? {
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
        match name.as_str() {
            "keys" => names.push("keys/journal.key".to_owned()),
            name if NOT_LEFT_OUT.contains(&name) => {}
            _ if path.is_dir() => names.push(format!("{name}/")),
            _ => names.push(name),
        }
    }
    names.sort();
    Ok(names)
}

/// Copies a state that may be in use; a copy that could not be finished is removed again.
pub(crate) fn backup(
    layout: &Layout,
    key: &JournalKey,
    clock: &dyn Clock,
    dest: &Path,
    outside: Vec<String>,
) -> Result<BackupReport, JournalError> {
    refuse_if_used(dest)?;
    let copied = copy_state(layout, key, clock, dest, outside);
    if copied.is_err() {
        let _ = fs::remove_dir_all(dest);
    }
    copied
}

fn copy_state(
    layout: &Layout,
    key: &JournalKey,
    clock: &dyn Clock,
    dest: &Path,
    outside: Vec<String>,
) -> Result<BackupReport, JournalError> {
    let target = Layout::new(dest);
    target.create().map_err(|e| JournalError::file("create", dest, e))?;
    // Read before the copy is made: whatever it says must then be in the copy.
    let anchors = vec![(layout.anchor(), anchor::read(&layout.anchor())?)];
    copy_database(layout, &target)?;
    let copied = copy_files(layout, &target)?;
    let keys = keys::public_keys(layout)?;
    keys::write_public_keys(&target, &keys)?;
    let chain = Chain::load(&Reader::open(&target)?, &keys, Some(key.seals()), &anchors)?;
    anchor::create_both(&target, &chain.sign(key, clock))?;
    let mut left_out = left_out(layout)?;
    left_out.extend(outside);
    let note = dest.join(LEFT_OUT_NOTE);
    let text = serde_json::to_vec_pretty(&left_out).map_err(|e| JournalError::file("write", &note, e.into()))?;
    write_atomically(&note, 0o600, &text).map_err(|e| JournalError::file("write", &note, e))?;
    let bytes = bytes_below(dest)?;
    Ok(BackupReport { records: chain.head.count, bytes, path: dest.to_owned(), left_out, ..copied })
}

/// What the note of a backup says that it left out; nothing for a backup of an older release.
fn noted_left_out(backup: &Path) -> Vec<String> {
    fs::read(backup.join(LEFT_OUT_NOTE)).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Puts a backup in place as the state of `root`. What is left of a damaged journal there moves to `journal/lost-<time>/`.
///
/// # Errors
/// `backup_unusable` if the backup does not verify, `would_overwrite` if `root` has a journal, `state_in_use`.
pub fn restore(from: &Path, root: &Path, at: Timestamp) -> Result<BackupReport, JournalError> {
    let report = verify(from, VerifyOptions::default())?;
    if let Some(problem) = report.problems.iter().find(|problem| problem.code != RESTORE_UNACKNOWLEDGED) {
        let reason = format!("{}: {}", problem.position, problem.message);
        return Err(JournalError::BadBackup { path: from.to_owned(), reason });
    }
    let (source, target) = (Layout::new(from), Layout::new(root));
    target.create().map_err(|e| JournalError::file("create", root, e))?;
    let _lock = WriterLock::take(&target)?;
    if target.database().exists() {
        return Err(JournalError::WouldOverwrite { path: target.database() });
    }
    if damage::marker(&target)?.is_some() || target.anchor().exists() || target.outer_anchor().exists() {
        damage::move_remains(&target, at)?;
        target.create().map_err(|e| JournalError::file("create", root, e))?;
    }
    let copied = copy_files(&source, &target)?;
    let mut trusted = keys::public_keys(&source)?;
    let own = keys::public_keys(&target)?;
    trusted.extend(own.into_iter().filter(|key| !keys::public_keys(&source).is_ok_and(|k| k.contains(key))));
    keys::write_public_keys(&target, &trusted)?;
    let key = if target.private_key().exists() { JournalKey::load(&target)? } else { JournalKey::create(&target)? };
    // Before anything can be opened: a state that does not know that it was restored would repeat what the backup does not know of.
    let note = RestoredNote { at, records: report.records, key_id: key.public().id(), started: false, accepted: false };
    restored::write(&target, &note)?;
    for anchor in [target.anchor(), target.outer_anchor()] {
        fs::copy(source.anchor(), anchor).map_err(|e| JournalError::file("copy", source.anchor(), e))?;
    }
    // The database comes last: before it is there, the state counts as having none and restoring can be repeated.
    copy_database(&source, &target)?;
    let bytes = copied.bytes + fs::metadata(target.database()).map_or(0, |database| database.len());
    let left_out = noted_left_out(from);
    Ok(BackupReport { records: report.records, bytes, path: root.to_owned(), left_out, ..copied })
}

fn refuse_if_used(dest: &Path) -> Result<(), JournalError> {
    match fs::read_dir(dest) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(JournalError::WouldOverwrite { path: dest.to_owned() }),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(JournalError::file("read", dest, error)),
    }
}

/// Copies the database under a temporary name, makes it durable, then gives it its name.
fn copy_database(from: &Layout, to: &Layout) -> Result<(), JournalError> {
    let source = db::open_reader(&from.database())?;
    let path = to.database();
    let temporary = path.with_extension("db.copying");
    let failed = |e| JournalError::file("write", &temporary, e);
    if temporary.exists() {
        fs::remove_file(&temporary).map_err(failed)?;
    }
    {
        let mut target = db::open_copy_target(&temporary)?;
        // All pages in one step are one read transaction: nothing that is committed meanwhile can mix in.
        let copying = Backup::new(&source, &mut target)?;
        if copying.step(-1)? != StepResult::Done {
            return Err(JournalError::file("copy", path, std::io::ErrorKind::ResourceBusy.into()));
        }
    }
    fs::File::open(&temporary)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&temporary, &path))
        .and_then(|()| sync_dir(&to.journal_dir()))
        .map_err(failed)
}

/// Copies segments and artifacts. Both are never changed once they have their names, so copying them needs no lock.
fn copy_files(from: &Layout, to: &Layout) -> Result<BackupReport, JournalError> {
    let mut report =
        BackupReport { records: 0, segments: 0, artifacts: 0, bytes: 0, path: to.root.clone(), left_out: Vec::new() };
    let database = if to.database().exists() { to.database() } else { from.database() };
    for segment in segments::all(&db::open_reader(&database)?)? {
        report.bytes += copy(&from.segment(&segment.file), &to.segment(&segment.file))?;
        report.segments += 1;
    }
    sync_dir(&to.segments_dir()).map_err(|e| JournalError::file("sync", to.segments_dir(), e))?;
    for shelf in list(&from.artifacts_dir())? {
        let Some(name) = shelf.file_name() else { continue };
        let target = to.artifacts_dir().join(name);
        crate::layout::create_private_dir(&target).map_err(|e| JournalError::file("create", &target, e))?;
        for artifact in list(&shelf)? {
            let Some(name) = artifact.file_name().filter(|n| !n.to_string_lossy().starts_with('.')) else { continue };
            match copy(&artifact, &target.join(name)) {
                Ok(bytes) => report.bytes += bytes,
                // Collected meanwhile, because nothing names it.
                Err(_) if !artifact.exists() => continue,
                Err(error) => return Err(error),
            }
            report.artifacts += 1;
        }
        sync_dir(&target).map_err(|e| JournalError::file("sync", &target, e))?;
    }
    sync_dir(&to.artifacts_dir()).map_err(|e| JournalError::file("sync", to.artifacts_dir(), e))?;
    Ok(report)
}

fn copy(from: &Path, to: &Path) -> Result<u64, JournalError> {
    fs::copy(from, to)
        .and_then(|bytes| fs::File::open(to)?.sync_all().map(|()| bytes))
        .map_err(|e| JournalError::file("copy", from, e))
}

/// Bytes of all files below a directory.
fn bytes_below(dir: &Path) -> Result<u64, JournalError> {
    let mut bytes = 0;
    for path in list(dir)? {
        let stat = fs::symlink_metadata(&path).map_err(|e| JournalError::file("inspect", &path, e))?;
        bytes += if stat.is_dir() { bytes_below(&path)? } else { stat.len() };
    }
    Ok(bytes)
}

fn list(dir: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let failed = |e| JournalError::file("read", dir, e);
    fs::read_dir(dir).map_err(failed)?.map(|entry| entry.map(|e| e.path()).map_err(failed)).collect()
}
