//! Collecting artifacts that nothing names: what was stored for a record that was then refused, or whose writer died before it was appended.
//!
//! INVARIANT: an artifact goes only if it is old, no record has it as its payload, no derived table keeps it, no payload of any record mentions its digest, and nobody
//! stores it meanwhile. Whoever stores bytes that are there already makes them young again ([`crate::ArtifactStore::put`]) under the lock under which they are removed, so
//! a record that is appended while artifacts are collected finds what it names. If anything cannot be read, nothing is removed. A crash in the middle leaves the rest for the
//! next time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::{Duration, SystemTime};

use palyra_common::Digest;
use rusqlite::Connection;

use crate::artifacts::{ArtifactStore, REFRESH_AFTER};
use crate::db;
use crate::error::JournalError;
use crate::layout::Layout;
use crate::projection::{self, KEPT_ARTIFACT, is_plain_name};
use crate::reader::Reader;
use crate::segments;

/// Younger artifacts are left alone whatever the caller says: what was stored may still be on its way into a record.
const MIN_AGE: Duration = REFRESH_AFTER.saturating_mul(2);
/// How the digest of an artifact begins wherever it is written down.
const PREFIX: &[u8] = b"sha256:";
/// Hex digits of a digest.
const DIGITS: usize = 64;

/// What was collected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Artifacts that were removed.
    pub removed: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Artifacts that may go, with when they were stored last.
type Candidates = BTreeMap<Digest, SystemTime>;

/// Removes artifacts that were not stored for `age` and that nothing names: not the log, not a derived table, and not `named`. Blocks, and reads the whole log if there is
/// anything to remove.
pub(crate) fn collect(layout: &Layout, age: Duration, named: &BTreeSet<Digest>) -> Result<Collected, JournalError> {
    let store = ArtifactStore::new(layout.artifacts_dir());
    // Before the view of the log is opened: what is stored later is younger, and what is named by then is in the view.
    let mut candidates = old_artifacts(&store, age.max(MIN_AGE))?;
    candidates.retain(|digest, _| !named.contains(digest));
    if candidates.is_empty() {
        return Ok(Collected::default());
    }
    let reader = Reader::open(layout)?;
    reader.connection().execute_batch("BEGIN")?;
    spare_payloads(layout, reader.connection(), &mut candidates)?;
    spare_kept(reader.connection(), &mut candidates)?;
    if !candidates.is_empty() {
        reader.each_while(1, &mut |record| {
            for digest in mentioned(&record.payload) {
                candidates.remove(&digest);
            }
            Ok(if candidates.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
    }
    let mut collected = Collected::default();
    for (digest, stored) in candidates {
        if let Some(bytes) = store.remove_unless_stored_since(&digest, stored)? {
            collected.removed += 1;
            collected.bytes += bytes;
        }
    }
    Ok(collected)
}

fn old_artifacts(store: &ArtifactStore, age: Duration) -> Result<Candidates, JournalError> {
    let mut found = Candidates::new();
    let Some(before) = SystemTime::now().checked_sub(age) else { return Ok(found) };
    for shelf in entries(store.dir())? {
        if !shelf.is_dir() {
            continue;
        }
        for path in entries(&shelf)? {
            // What has another name is not an artifact, and verification says so.
            let digest = path.file_name().and_then(|name| Digest::from_str(&name.to_string_lossy()).ok());
            let Some(digest) = digest.filter(|digest| store.path(digest) == path) else { continue };
            let stored = fs::metadata(&path)
                .and_then(|file| file.modified())
                .map_err(|e| JournalError::file("inspect", &path, e))?;
            if stored < before {
                found.insert(digest, stored);
            }
        }
    }
    Ok(found)
}

fn entries(dir: &std::path::Path) -> Result<Vec<PathBuf>, JournalError> {
    let failed = |e| JournalError::file("read", dir, e);
    fs::read_dir(dir).map_err(failed)?.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect()
}

/// Payloads of records, sealed or live.
fn spare_payloads(layout: &Layout, live: &Connection, candidates: &mut Candidates) -> Result<(), JournalError> {
    let mut spare = |connection: &Connection| -> Result<(), JournalError> {
        let mut statement = connection.prepare("SELECT artifact FROM records WHERE artifact IS NOT NULL")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            candidates.remove(&Digest(row.get(0)?));
        }
        Ok(())
    };
    for segment in segments::all(live)? {
        spare(&db::open_sealed(&layout.segment(&segment.file))?)?;
    }
    spare(live)
}

/// What derived tables say is kept.
fn spare_kept(connection: &Connection, candidates: &mut Candidates) -> Result<(), JournalError> {
    let tables = projection::registered(connection)?.into_iter().flat_map(|one| one.tables);
    for table in tables.filter(|table| is_plain_name(table)) {
        let keeps = connection
            .prepare("SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2")?
            .exists((&table, KEPT_ARTIFACT))?;
        if !keeps {
            continue;
        }
        let mut statement = connection.prepare(&format!("SELECT {KEPT_ARTIFACT} FROM {table}"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Ok(digest) = Digest::from_str(&row.get::<_, String>(0)?) {
                candidates.remove(&digest);
            }
        }
    }
    Ok(())
}

/// Every digest that a text mentions.
fn mentioned(text: &[u8]) -> impl Iterator<Item = Digest> {
    let starts = text.windows(PREFIX.len()).enumerate().filter(|(_, window)| *window == PREFIX);
    starts.filter_map(move |(at, _)| {
        let digits = text.get(at + PREFIX.len()..at + PREFIX.len() + DIGITS)?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_found_wherever_they_stand() {
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        let text = format!("{{\"a\":\"{one}\",\"text\":\"see sha256:{two}, sha256:12 and sha256:sha256:\"}}")
            .replace("sha256:sha256:", "sha256:");
        assert_eq!(mentioned(text.as_bytes()).collect::<Vec<_>>(), [one, two]);
        assert_eq!(mentioned(b"sha256:").count(), 0);
    }
}
