//! Sealed segments: files that hold a consecutive range of records and are never written again.
//!
//! A range moves in steps that each survive a crash: the segment is built under a temporary name, made durable, read back and
//! compared; renamed; registered in the database in one transaction (from here on it is the truth for its range); then
//! the rows are trimmed from the live table, a few at a time, between commits. A file that was never registered is a spare
//! copy and is removed at the next start.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use palyra_common::{Digest, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use sha2::{Digest as _, Sha256};

use crate::convert::{to_sql, to_u64};
use crate::db;
use crate::error::JournalError;
use crate::layout::{Layout, sync_dir};
use crate::position::Position;
use crate::record::hash_of;
use crate::row::{self, COLUMNS};

/// The tables of a segment file: the same columns, so that the same code reads both.
const SCHEMA: &str = "
    CREATE TABLE records (
        seq INTEGER PRIMARY KEY NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, session_id BLOB, run_id BLOB,
        run_seq INTEGER, payload BLOB, artifact BLOB, prev_hash BLOB NOT NULL, hash BLOB NOT NULL, seal BLOB
    ) STRICT;
    CREATE UNIQUE INDEX records_by_run ON records (run_id, run_seq) WHERE run_seq IS NOT NULL;";

/// One row of the `segments` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentRow {
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) file_digest: Digest,
    pub(crate) first_prev_hash: Digest,
    pub(crate) last_hash: Digest,
    pub(crate) sealed_at: Timestamp,
}

const SEGMENT_COLUMNS: &str = "first_seq, last_seq, file, bytes, file_digest, first_prev_hash, last_hash, sealed_at";

impl SegmentRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            first_seq: to_u64(row.get(0)?),
            last_seq: to_u64(row.get(1)?),
            file: row.get(2)?,
            bytes: to_u64(row.get(3)?),
            file_digest: Digest(row.get(4)?),
            first_prev_hash: Digest(row.get(5)?),
            last_hash: Digest(row.get(6)?),
            sealed_at: Timestamp(row.get(7)?),
        })
    }

    /// The name a segment of this range has; a registered name of another shape is damage, never a path to follow.
    pub(crate) fn file_name(first: u64, last: u64) -> String {
        format!("{first:012}-{last:012}.db")
    }

    pub(crate) fn name_is_right(&self) -> bool {
        self.file == Self::file_name(self.first_seq, self.last_seq)
    }
}

/// The segment that holds a record, or else the first one after it.
pub(crate) fn holding_or_after(connection: &Connection, seq: u64) -> Result<Option<SegmentRow>, JournalError> {
    if sealed_through(connection)? < seq { Ok(None) } else { holding(connection, seq).map(Some) }
}

/// The segment that holds a sealed record.
pub(crate) fn holding(connection: &Connection, seq: u64) -> Result<SegmentRow, JournalError> {
    let found = connection
        .prepare_cached(&format!(
            "SELECT {SEGMENT_COLUMNS} FROM segments WHERE first_seq <= ?1 ORDER BY first_seq DESC LIMIT 1"
        ))?
        .query_row([to_sql(seq)], SegmentRow::from_row)
        .optional()?;
    match found {
        Some(segment) if segment.last_seq >= seq && segment.name_is_right() => Ok(segment),
        _ => Err(JournalError::damaged(Position::Record { seq }, "the segment that holds it is not registered")),
    }
}

/// The last sealed record; zero if there is none.
pub(crate) fn sealed_through(connection: &Connection) -> Result<u64, JournalError> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT last_seq FROM segments ORDER BY first_seq DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(last.map_or(0, to_u64))
}

/// All segments in order.
pub(crate) fn all(connection: &Connection) -> Result<Vec<SegmentRow>, JournalError> {
    let mut statement = connection.prepare(&format!("SELECT {SEGMENT_COLUMNS} FROM segments ORDER BY first_seq"))?;
    let rows = statement.query_map([], SegmentRow::from_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What can be told at every start: the live table begins right after the sealed records at the latest, and every sealed
/// file is there with its size.
pub(crate) fn check(layout: &Layout, connection: &Connection) -> Result<(), JournalError> {
    let oldest: Option<i64> = connection.query_row("SELECT min(seq) FROM records", [], |row| row.get(0))?;
    let mut next = 1;
    for segment in all(connection)? {
        let position = Position::Records { first: segment.first_seq, last: segment.last_seq };
        if segment.first_seq != next || !segment.name_is_right() {
            return Err(JournalError::damaged(position, "the entry of this segment was modified"));
        }
        let path = layout.segment(&segment.file);
        let size = match fs::metadata(&path) {
            Ok(metadata) => Some(metadata.len()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            // A disk that fails to answer says nothing about the file.
            Err(error) => return Err(JournalError::file("inspect", path, error)),
        };
        if size != Some(segment.bytes) {
            return Err(JournalError::damaged(position, format!("segment `{}` is missing or truncated", segment.file)));
        }
        next = segment.last_seq + 1;
    }
    match oldest.map(to_u64) {
        Some(oldest) if oldest > next => {
            Err(JournalError::damaged(Position::Records { first: next, last: oldest - 1 }, "they are missing"))
        }
        _ => Ok(()),
    }
}

/// Makes a segment the truth for its range.
pub(crate) fn register(connection: &Connection, segment: &SegmentRow) -> Result<(), JournalError> {
    connection.execute(
        &format!("INSERT INTO segments ({SEGMENT_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"),
        params![
            to_sql(segment.first_seq),
            to_sql(segment.last_seq),
            segment.file,
            to_sql(segment.bytes),
            segment.file_digest.0,
            segment.first_prev_hash.0,
            segment.last_hash.0,
            segment.sealed_at.0,
        ],
    )?;
    Ok(())
}

/// Builds the segment for a range of the live table and leaves it durable under its final name, not yet registered.
/// Every hash is recomputed on the way: damage is never sealed in. Returns `None` if told to stop.
pub(crate) fn build(
    layout: &Layout,
    live: &Connection,
    (first, last): (u64, u64),
    at: Timestamp,
    stop: &AtomicBool,
) -> Result<Option<SegmentRow>, JournalError> {
    let file = SegmentRow::file_name(first, last);
    let dir = layout.segments_dir();
    let temporary = dir.join(format!("{file}.tmp"));
    let failed = |e| JournalError::file("write", &temporary, e);
    remove_if_there(&temporary).map_err(failed)?;
    let copied = copy_range(live, &temporary, (first, last), stop);
    let Some((first_prev_hash, last_hash)) = copied.inspect_err(|_| drop(remove_if_there(&temporary)))? else {
        remove_if_there(&temporary).map_err(failed)?;
        return Ok(None);
    };
    File::open(&temporary).and_then(|f| f.sync_all()).map_err(failed)?;
    let (bytes, file_digest) = digest_of_file(&temporary).map_err(failed)?;
    fs::rename(&temporary, dir.join(&file)).and_then(|()| sync_dir(&dir)).map_err(failed)?;
    Ok(Some(SegmentRow {
        first_seq: first,
        last_seq: last,
        file,
        bytes,
        file_digest,
        first_prev_hash,
        last_hash,
        sealed_at: at,
    }))
}

/// Copies records into a new file and checks the copy; returns the hashes at both ends.
fn copy_range(
    live: &Connection,
    path: &Path,
    (first, last): (u64, u64),
    stop: &AtomicBool,
) -> Result<Option<(Digest, Digest)>, JournalError> {
    let target = db::create_for_sealing(path)?;
    target.execute_batch(SCHEMA)?;
    let transaction = target.unchecked_transaction()?;
    let mut statement =
        live.prepare(&format!("SELECT {COLUMNS} FROM records WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq"))?;
    let mut rows = statement.query((to_sql(first), to_sql(last)))?;
    let mut ends: Option<(Digest, Digest)> = None;
    let mut expected = first;
    while let Some(found) = rows.next()? {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let raw = row::decode(found)??;
        let record = &raw.record;
        let broken = |reason: &str| Err(JournalError::damaged(Position::Record { seq: expected }, reason));
        if record.seq != expected {
            return broken("it is missing");
        }
        if ends.is_some_and(|(_, before)| before != record.prev_hash) {
            return broken("it does not follow from the previous record");
        }
        if hash_of(record, &raw.payload_digest()) != record.hash {
            return broken("it was modified");
        }
        // What is old enough to be moved lies below a signature and needs no seal.
        row::insert(&transaction, record, raw.artifact.as_ref(), None)?;
        ends = Some((ends.map_or(record.prev_hash, |(start, _)| start), record.hash));
        expected += 1;
    }
    transaction.commit()?;
    if expected != last + 1 {
        return Err(JournalError::damaged(Position::Record { seq: expected }, "it is missing"));
    }
    drop(target);
    // The copy is read back through a fresh connection before anything relies on it.
    let copy = db::open_sealed(path)?;
    let (count, hash): (i64, [u8; 32]) = copy.query_row(
        "SELECT (SELECT count(*) FROM records), hash FROM records ORDER BY seq DESC LIMIT 1",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if to_u64(count) != last - first + 1 || ends.is_none_or(|(_, end)| end.0 != hash) {
        return Err(JournalError::damaged(Position::Record { seq: last }, "the sealed copy differs from the log"));
    }
    Ok(ends)
}

/// Size and digest of a file, in constant memory.
pub(crate) fn digest_of_file(path: &Path) -> std::io::Result<(u64, Digest)> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 128 * 1024];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((bytes, Digest(hasher.finalize().into())));
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
        bytes += read as u64;
    }
}

/// Removes what an interrupted rotation left: temporary files and copies that were never registered.
pub(crate) fn clean(layout: &Layout, connection: &Connection) -> Result<(), JournalError> {
    let dir = layout.segments_dir();
    let failed = |e| JournalError::file("clean", &dir, e);
    let oldest: Option<i64> = connection.query_row("SELECT min(seq) FROM records", [], |row| row.get(0))?;
    let oldest = oldest.map_or(u64::MAX, to_u64);
    let sealed = sealed_through(connection)?;
    for entry in fs::read_dir(&dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let spare = match name.strip_suffix(".db").and_then(|stem| stem.split_once('-')) {
            // Only what the live table still holds is a spare copy.
            Some((first, _)) => first.parse::<u64>().is_ok_and(|first| first > sealed && first >= oldest),
            None => name.ends_with(".tmp"),
        };
        if spare {
            tracing::info!(file = %name, "removing files left by an interrupted rotation");
            remove_if_there(&entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
