//! The pass over all records: segments first, then the live table, checking order, hashes, links, tree and statements.
//!
//! INVARIANT: `expected` is the number that must come next. Everything that is not exactly that record, unchanged and linked to
//! the one before, is reported under its number. After a gap the links and the tree start anew, so that one hole is one problem.

use palyra_common::Digest;
use rusqlite::Connection;

use super::derived::Scratch;
use super::expect::Expectations;
use super::report::{VerifyProgress, VerifyReport};
use super::restores::KeyHistory;
use super::{ProgressCallback, files};
use crate::artifacts::ArtifactStore;
use crate::checkpoint::{JournalId, SignedCheckpoint};
use crate::convert::{to_sql, to_u64};
use crate::db;
use crate::error::JournalError;
use crate::keys::JournalKey;
use crate::layout::Layout;
use crate::merkle::{self, CHUNK, Peaks};
use crate::position::Position;
use crate::record::{Head, hash_of};
use crate::row::{self, COLUMNS, Misshapen, RawRecord};
use crate::segments::{self, SegmentRow};

/// Records between two calls of the progress callback.
const PROGRESS_EVERY: u64 = 4096;
/// Checkpoints read at a time.
const CHECKPOINTS_AT_A_TIME: u64 = 256;

/// One pass.
pub(super) struct Walk<'a> {
    layout: &'a Layout,
    connection: &'a Connection,
    artifacts: ArtifactStore,
    expectations: Expectations,
    scratch: Scratch,
    progress: Option<ProgressCallback>,
    report: &'a mut VerifyReport,
    expected: u64,
    previous: Option<Digest>,
    tree: Option<Peaks>,
    checkpoints: Vec<SignedCheckpoint>,
    checkpoints_through: Option<u64>,
    keys: KeyHistory,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        layout: &'a Layout,
        connection: &'a Connection,
        expectations: Expectations,
        scratch: Scratch,
        progress: Option<ProgressCallback>,
        report: &'a mut VerifyReport,
    ) -> Self {
        let previous = expectations.id().map(|id| id.genesis());
        Self {
            layout,
            connection,
            artifacts: ArtifactStore::new(layout.artifacts_dir()),
            expectations,
            scratch,
            progress,
            report,
            expected: 1,
            previous,
            tree: Some(Peaks::default()),
            checkpoints: Vec::new(),
            checkpoints_through: None,
            keys: KeyHistory::default(),
        }
    }

    pub(super) fn run(&mut self, version: i64) {
        self.statements(0);
        if version >= 2 {
            self.segments();
        }
        // Rows up to here are being trimmed and were read from their segments.
        self.source(self.connection, None);
        self.end();
    }

    /// Gives the rebuilt projections back, and the end of the log; the former are worth comparing only if the log itself is sound.
    pub(super) fn finish(self) -> (Scratch, Option<(JournalId, Head)>, KeyHistory) {
        let head = self.expectations.id().zip(self.previous);
        let count = self.expected - 1;
        (self.scratch, head.map(|(id, hash)| (id, Head { count, hash })), self.keys)
    }

    fn segments(&mut self) {
        let segments = match segments::all(self.connection) {
            Ok(segments) => segments,
            Err(error) => {
                self.report.problem(super::table("segments"), "segments_unreadable", error.to_string());
                return;
            }
        };
        for segment in segments {
            if segment.first_seq != self.expected || segment.last_seq < segment.first_seq || !segment.name_is_right() {
                let position = Position::Records { first: segment.first_seq, last: segment.last_seq };
                self.report.problem(position, "segment_changed", "the entry of this segment was modified");
                continue;
            }
            let path = self.layout.segment(&segment.file);
            if !path.exists() {
                let position = Position::Records { first: segment.first_seq, last: segment.last_seq };
                let message = format!("segment `{}` is missing", segment.file);
                self.report.problem(position, "segment_missing", message);
                self.gap(segment.last_seq + 1);
                continue;
            }
            let before = self.report.problems.len();
            match db::open_sealed(&path) {
                Ok(connection) => self.source(&connection, Some(&segment)),
                Err(error) => {
                    let position = Position::Records { first: segment.first_seq, last: segment.last_seq };
                    self.report.problem(position, "segment_unreadable", error.to_string());
                    self.gap(segment.last_seq + 1);
                }
            }
            self.report.segments += 1;
            files::segment(&path, &segment, self.report.problems.len() > before, self.report);
        }
    }

    /// Reads all records of one file from `expected` on, as far as they can be read.
    fn source(&mut self, connection: &Connection, segment: Option<&SegmentRow>) {
        let last = segment.map_or(u64::MAX, |segment| segment.last_seq);
        loop {
            match self.stream(connection, last) {
                Ok(()) => break,
                Err(error) => {
                    if self.report.is_full() {
                        return;
                    }
                    let first_bad = self.expected;
                    let end = last.min(self.expectations.last_count().max(first_bad));
                    let resumed = resume(connection, first_bad, end);
                    let position = Position::Records { first: first_bad, last: resumed.map_or(end, |next| next - 1) };
                    self.report.problem(position, "records_unreadable", error.to_string());
                    match resumed {
                        Some(next) => self.gap(next),
                        None => {
                            self.gap(end + 1);
                            break;
                        }
                    }
                }
            }
        }
        if segment.is_some() && self.expected <= last {
            let position = Position::Records { first: self.expected, last };
            self.report.problem(position, "records_missing", "the segment does not contain them");
            self.gap(last + 1);
        }
    }

    fn stream(&mut self, connection: &Connection, last: u64) -> Result<(), JournalError> {
        let mut statement =
            connection.prepare(&format!("SELECT {COLUMNS} FROM records WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq"))?;
        let mut rows = statement.query((to_sql(self.expected), to_sql(last)))?;
        while let Some(found) = rows.next()? {
            if self.report.is_full() {
                return Ok(());
            }
            let seq = to_u64(found.get(0).unwrap_or(0));
            if seq < self.expected {
                self.report.problem(Position::Record { seq }, "record_out_of_order", "it is out of place");
                continue;
            }
            if seq > self.expected {
                let position = Position::Records { first: self.expected, last: seq - 1 };
                self.report.problem(position, "records_missing", "they are missing");
                self.gap(seq);
            }
            match row::decode(found)? {
                Ok(raw) => self.record(raw),
                Err(Misshapen { seq, reason }) => {
                    self.report.problem(Position::Record { seq }, "record_changed", reason);
                    self.gap(self.expected + 1);
                }
            }
        }
        Ok(())
    }

    /// Checks the record with the expected number.
    fn record(&mut self, raw: RawRecord) {
        let seq = raw.record.seq;
        let here = || Position::Record { seq };
        if hash_of(&raw.record, &raw.payload_digest()) != raw.record.hash {
            self.report.problem(here(), "record_changed", "its content does not match its hash");
        }
        if self.previous.is_some_and(|hash| hash != raw.record.prev_hash) {
            self.report.problem(here(), "chain_broken", "it does not follow from the previous record");
        }
        let hash = raw.record.hash;
        let completed =
            self.tree.as_mut().and_then(|tree| tree.push(merkle::leaf(&hash)).map(|root| (root, tree.encode())));
        self.previous = Some(hash);
        self.expected = seq + 1;
        self.report.records += 1;
        if let Some(digest) = raw.artifact
            && let Err(error) = self.artifacts.check(&digest)
        {
            let code = match error {
                JournalError::NoSuchArtifact { .. } => "artifact_missing",
                _ => "artifact_changed",
            };
            self.report.problem(here(), code, format!("the payload of this record: {error}"));
        } else {
            match raw.complete(&self.artifacts) {
                Ok(record) => {
                    self.keys.record(&record);
                    self.scratch.apply(&record, self.report);
                }
                Err(error) => self.report.problem(here(), "artifact_changed", error.to_string()),
            }
        }
        if let Some((root, peaks)) = completed {
            self.chunk(seq / CHUNK - 1, root, &peaks);
        }
        self.statements(seq);
        if seq.is_multiple_of(PROGRESS_EVERY)
            && let Some(progress) = &self.progress
        {
            progress(VerifyProgress { records: self.report.records, total: self.expectations.last_count() });
        }
    }

    /// Compares a stored chunk with the one that follows from the records.
    fn chunk(&mut self, chunk: u64, root: Digest, peaks: &[u8]) {
        let stored = self.connection.query_row(
            "SELECT root, peaks FROM merkle_chunks WHERE chunk = ?1",
            [to_sql(chunk)],
            |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?)),
        );
        let message = match stored {
            Ok((stored_root, stored_peaks)) if stored_root == root.0 && stored_peaks == peaks => return,
            Ok(_) => "it does not match the records".to_owned(),
            Err(rusqlite::Error::QueryReturnedNoRows) => "it is missing".to_owned(),
            Err(error) => error.to_string(),
        };
        let position = Position::Table { table: "merkle_chunks".to_owned(), row: chunk + 1 };
        self.report.problem(position, "chunk_changed", message);
    }

    /// Checks everything that was signed about the log at this count.
    fn statements(&mut self, count: u64) {
        let kept = self.next_checkpoint(count);
        if kept.is_none() && !self.expectations.speaks_of(count) {
            return;
        }
        let root = self.tree.as_ref().map(Peaks::root);
        for key in self.expectations.reach(count, self.previous, root, self.report) {
            self.keys.signed(count, key);
        }
        if let Some(kept) = kept
            && self.expectations.check_row(&kept, self.previous, root, self.report)
        {
            self.keys.signed(count, kept.key_id);
        }
    }

    /// The kept checkpoint at exactly this count. Those that were passed over stand at numbers that are missing.
    fn next_checkpoint(&mut self, count: u64) -> Option<SignedCheckpoint> {
        loop {
            if self.checkpoints.is_empty() && !self.load_checkpoints() {
                return None;
            }
            let next = self.checkpoints.last()?.count;
            if next > count {
                return None;
            }
            let checkpoint = self.checkpoints.pop();
            if next == count {
                return checkpoint;
            }
        }
    }

    /// Reads the next few checkpoints, the nearest last; false if there are none left.
    fn load_checkpoints(&mut self) -> bool {
        let after = match self.checkpoints_through {
            Some(u64::MAX) => return false,
            Some(count) => to_sql(count),
            None => -1,
        };
        let Some(id) = self.expectations.id() else { return false };
        let read = || -> rusqlite::Result<Vec<SignedCheckpoint>> {
            let mut statement = self.connection.prepare_cached(
                "SELECT count, head, merkle_root, at, key_id, signature FROM checkpoints
                 WHERE count > ?1 ORDER BY count LIMIT ?2",
            )?;
            statement
                .query_map((after, to_sql(CHECKPOINTS_AT_A_TIME)), |row| SignedCheckpoint::from_row(id, row))?
                .collect()
        };
        match read() {
            Ok(mut found) => {
                found.reverse();
                self.checkpoints_through = Some(found.first().map_or(u64::MAX, |last| last.count));
                self.checkpoints = found;
                !self.checkpoints.is_empty()
            }
            Err(error) => {
                self.checkpoints_through = Some(u64::MAX);
                self.report.problem(super::table("checkpoints"), "checkpoint_unreadable", error.to_string());
                false
            }
        }
    }

    /// Whether the last record carries a seal of this journal's key, which only the key's holder can tell.
    fn is_sealed(&self, count: u64) -> bool {
        let (Some(id), Some(hash)) = (self.expectations.id(), self.previous) else { return false };
        let seal: rusqlite::Result<Vec<u8>> =
            self.connection.query_row("SELECT seal FROM records WHERE seq = ?1", [to_sql(count)], |row| row.get(0));
        let (Ok(seal), Ok(key)) = (seal, JournalKey::read(self.layout)) else { return false };
        key.seals().sealed(id, Head { count, hash }, &seal)
    }

    fn gap(&mut self, next: u64) {
        self.expected = next;
        self.previous = None;
        self.tree = None;
    }

    fn end(&mut self) {
        let count = self.expected - 1;
        if let Some(signed) = self.expectations.signed_through()
            && count > signed
            && !self.is_sealed(count)
        {
            let position = Position::Records { first: signed + 1, last: count };
            let message =
                "they follow the signed head but are not sealed by this journal: something else appended them";
            self.report.problem(position, "records_unsigned", message);
        }
        self.expectations.end(count, self.report);
        while !self.checkpoints.is_empty() || self.load_checkpoints() {
            for checkpoint in std::mem::take(&mut self.checkpoints) {
                let position = Position::Checkpoint { count: checkpoint.count };
                self.report.problem(
                    position,
                    "checkpoint_refuted",
                    format!("it covers more than the {count} existing records"),
                );
            }
            if self.report.is_full() {
                break;
            }
        }
        let extra = self.connection.query_row(
            "SELECT count(*) FROM merkle_chunks WHERE chunk < 0 OR chunk >= ?1",
            [to_sql(count / CHUNK)],
            |row| row.get::<_, i64>(0),
        );
        if self.tree.is_some() && extra.is_ok_and(|extra| extra > 0) {
            self.report.problem(
                super::table("merkle_chunks"),
                "chunk_changed",
                "it has rows for records that do not exist",
            );
        }
        if self.tree.is_none() || !self.report.problems.is_empty() {
            self.scratch.give_up();
        }
    }
}

/// Finds the next number from which reading works again, in steps that double.
pub(crate) fn resume(connection: &Connection, bad: u64, end: u64) -> Option<u64> {
    let sql = format!("SELECT {COLUMNS} FROM records WHERE seq >= ?1 ORDER BY seq LIMIT 1");
    let mut step = 1;
    while let Some(from) = bad.checked_add(step).filter(|from| *from <= end) {
        let found = connection.query_row(&sql, [to_sql(from)], |row| {
            let _ = row::decode(row)?;
            row.get::<_, i64>(0)
        });
        match found {
            Ok(seq) if to_u64(seq) >= from && to_u64(seq) <= end => return Some(to_u64(seq)),
            Ok(_) | Err(rusqlite::Error::QueryReturnedNoRows) => return None,
            Err(_) => step *= 2,
        }
    }
    None
}
