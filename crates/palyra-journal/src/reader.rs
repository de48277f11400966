//! Reading the log: by number, by run, from the end. Sealed segments and the live table look like one log.
//!
//! INVARIANT: the live table is asked only for records after the last sealed one. While a sealed range is being trimmed from
//! the live table, its rows exist twice and are read from the segment.

use std::ops::ControlFlow;
use std::sync::Arc;

use palyra_common::{Digest, RunId};
use rusqlite::{Connection, OptionalExtension as _, Params};

use crate::artifacts::ArtifactStore;
use crate::checkpoint::{self, JournalId, SignedCheckpoint};
use crate::convert::{to_sql, to_u64};
use crate::db;
use crate::error::JournalError;
use crate::layout::Layout;
use crate::position::Position;
use crate::record::{Head, StoredRecord};
use crate::row::{self, COLUMNS, RawRecord};
use crate::run_heads::{RunHeads, last_number, last_run_seq};
use crate::segment_pool::SegmentPool;
use crate::segments::{self, SegmentRow};

/// The records of a run, from a number of the run on.
const ON_TAPE: &str = "WHERE run_id = ?1 AND run_seq >= ?2 ORDER BY run_seq LIMIT ?3";

/// What looks at records until it has enough.
type Each<'a> = dyn FnMut(StoredRecord) -> Result<ControlFlow<()>, JournalError> + 'a;

/// A view of the log; within one call of `Journal::read` it does not change.
pub struct Reader {
    connection: Connection,
    layout: Layout,
    artifacts: ArtifactStore,
    segments: Arc<SegmentPool>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn open(layout: &Layout) -> Result<Self, JournalError> {
        Self::sharing(layout, Arc::default())
    }

    /// One that shares segments with others.
    pub(crate) fn sharing(layout: &Layout, segments: Arc<SegmentPool>) -> Result<Self, JournalError> {
        let (connection, artifacts) =
            (db::open_reader(&layout.database())?, ArtifactStore::new(layout.artifacts_dir()));
        Ok(Self { connection, layout: layout.clone(), artifacts, segments })
    }

    /// The database, for the queries of projections.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The artifact store.
    #[must_use]
    pub fn artifacts(&self) -> &ArtifactStore {
        &self.artifacts
    }

    /// The end of the log as this view sees it.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn head(&self) -> Result<Head, JournalError> {
        let last = self
            .connection
            .prepare_cached("SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1")?
            .query_row([], |row| Ok(Head { count: to_u64(row.get(0)?), hash: Digest(row.get(1)?) }))
            .optional()?;
        match last {
            Some(head) => Ok(head),
            None => Ok(Head { count: 0, hash: self.id()?.genesis() }),
        }
    }

    /// The seal of a record in the live table, if it is the last of its batch.
    pub(crate) fn seal(&self, seq: u64) -> Result<Option<Vec<u8>>, JournalError> {
        let seal = self
            .connection
            .query_row("SELECT seal FROM records WHERE seq = ?1", [to_sql(seq)], |row| row.get(0))
            .optional()?;
        Ok(seal.flatten())
    }

    /// The last signed statement in the database: all records up to it, or up to a little before the end.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn signed_head(&self) -> Result<SignedCheckpoint, JournalError> {
        checkpoint::read_head(&self.connection, self.id()?)?.ok_or_else(|| {
            JournalError::damaged(Position::Table { table: "head".to_owned(), row: 0 }, "the signed head is missing")
        })
    }

    /// Which journal this is.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn id(&self) -> Result<JournalId, JournalError> {
        checkpoint::read_id(&self.connection)?.ok_or_else(|| {
            JournalError::damaged(Position::Table { table: "meta".to_owned(), row: 0 }, "the journal's id is missing")
        })
    }

    /// One record.
    ///
    /// # Errors
    /// `record_not_found`, or what reading it failed with.
    pub fn record(&self, seq: u64) -> Result<StoredRecord, JournalError> {
        match self.range(seq, 1)?.pop() {
            Some(record) if record.seq == seq => Ok(record),
            _ => Err(JournalError::NoSuchRecord { seq, count: self.head()?.count }),
        }
    }

    /// Up to `limit` records from a number on.
    ///
    /// # Errors
    /// What reading failed with.
    pub fn range(&self, from_seq: u64, limit: usize) -> Result<Vec<StoredRecord>, JournalError> {
        let mut found = Vec::new();
        let mut from = from_seq.max(1);
        while found.len() < limit
            && let Some(segment) = segments::holding_or_after(&self.connection, from)?
        {
            let wanted = (to_sql(from), to_sql((limit - found.len()) as u64));
            let rows = self.in_segment(&segment, |connection| {
                select(connection, "WHERE seq >= ?1 ORDER BY seq LIMIT ?2", wanted)
            })?;
            self.complete(rows, &mut found)?;
            from = segment.last_seq + 1;
        }
        if found.len() < limit {
            let rows = select(
                &self.connection,
                "WHERE seq >= ?1 ORDER BY seq LIMIT ?2",
                (to_sql(from), to_sql((limit - found.len()) as u64)),
            )?;
            self.complete(rows, &mut found)?;
        }
        Ok(found)
    }

    /// Records from a number on: up to `limit`, and no more than have `bytes` of payload together, but at least one if there is any.
    ///
    /// # Errors
    /// What reading failed with.
    pub fn page(&self, from_seq: u64, limit: usize, bytes: usize) -> Result<Vec<StoredRecord>, JournalError> {
        let (mut found, mut left) = (Vec::new(), bytes);
        self.each_while(from_seq, &mut |record| {
            let size = record.payload.len();
            if found.len() == limit || (size > left && !found.is_empty()) {
                return Ok(ControlFlow::Break(()));
            }
            left = left.saturating_sub(size);
            found.push(record);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// The last `n` records, oldest first.
    ///
    /// # Errors
    /// What reading failed with.
    pub fn tail(&self, n: usize) -> Result<Vec<StoredRecord>, JournalError> {
        let count = self.head()?.count;
        self.range((count + 1).saturating_sub(n as u64), n)
    }

    /// A run's tape: up to `limit` of its records from a number of the run on.
    ///
    /// # Errors
    /// What reading failed with.
    pub fn run_tape(&self, run: RunId, from_run_seq: u64, limit: usize) -> Result<Vec<StoredRecord>, JournalError> {
        let Some(head) = RunHeads::get(&self.connection, run)? else { return Ok(Vec::new()) };
        let id = run.to_u128().to_be_bytes();
        let mut found = Vec::new();
        let mut next = from_run_seq.max(1);
        let sealed = segments::sealed_through(&self.connection)?;
        let mut from = head.first_seq;
        while found.len() < limit && from <= sealed.min(head.last_seq_at_most) {
            let segment = segments::holding(&self.connection, from)?;
            let wanted = (id, to_sql(next), to_sql((limit - found.len()) as u64));
            let rows = self.in_segment(&segment, |connection| select(connection, ON_TAPE, wanted))?;
            if let Some(last) = rows.last().and_then(|row| row.record.run_seq) {
                next = last + 1;
            }
            self.complete(rows, &mut found)?;
            from = segment.last_seq + 1;
        }
        // A run whose records are all sealed has none in the live table.
        if found.len() < limit && head.last_seq_at_most > sealed {
            let wanted = (id, to_sql(next), to_sql((limit - found.len()) as u64));
            let rows = select(&self.connection, ON_TAPE, wanted)?;
            self.complete(rows, &mut found)?;
        }
        Ok(found)
    }

    /// The last number on a run's tape; zero for a run that has none.
    ///
    /// # Errors
    /// What reading failed with.
    pub fn last_run_seq(&self, run: RunId) -> Result<u64, JournalError> {
        last_run_seq(&self.connection, run, |segment| {
            self.in_segment(segment, |connection| last_number(connection, run))
        })
    }

    /// Calls `each` for every record from a number on, one at a time, in constant memory.
    ///
    /// # Errors
    /// What reading failed with, or what `each` returned.
    pub fn for_each(
        &self,
        from_seq: u64,
        each: &mut dyn FnMut(StoredRecord) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        self.each_while(from_seq, &mut |record| each(record).map(ControlFlow::Continue))
    }

    /// The same until `each` has enough.
    pub(crate) fn each_while(&self, from_seq: u64, each: &mut Each<'_>) -> Result<(), JournalError> {
        let mut from = from_seq.max(1);
        while let Some(segment) = segments::holding_or_after(&self.connection, from)? {
            if self.in_segment(&segment, |connection| self.stream(connection, from, each))?.is_break() {
                return Ok(());
            }
            from = segment.last_seq + 1;
        }
        self.stream(&self.connection, from, each).map(drop)
    }

    fn stream(&self, connection: &Connection, from: u64, each: &mut Each<'_>) -> Result<ControlFlow<()>, JournalError> {
        let mut statement =
            connection.prepare_cached(&format!("SELECT {COLUMNS} FROM records WHERE seq >= ?1 ORDER BY seq"))?;
        let mut rows = statement.query([to_sql(from)])?;
        while let Some(row) = rows.next()? {
            let record = row::decode(row)??.complete(&self.artifacts)?;
            if each(record)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The hashes of the records `from..to`, counted from 1.
    pub(crate) fn hashes(&self, from: u64, to: u64) -> Result<Vec<Digest>, JournalError> {
        let mut hashes = Vec::new();
        let mut next = from;
        while next < to
            && let Some(segment) = segments::holding_or_after(&self.connection, next)?
        {
            self.in_segment(&segment, |connection| hashes_in(connection, next, to, &mut hashes))?;
            next = segment.last_seq + 1;
        }
        if next < to {
            hashes_in(&self.connection, next, to, &mut hashes)?;
        }
        if hashes.len() as u64 != to.saturating_sub(from) {
            let seq = from + hashes.len() as u64;
            return Err(JournalError::damaged(Position::Record { seq }, "it is missing"));
        }
        Ok(hashes)
    }

    /// The root of a complete chunk.
    pub(crate) fn chunk_root(&self, chunk: u64) -> Result<Digest, JournalError> {
        let root: Option<[u8; 32]> = self
            .connection
            .prepare_cached("SELECT root FROM merkle_chunks WHERE chunk = ?1")?
            .query_row([to_sql(chunk)], |row| row.get(0))
            .optional()?;
        root.map(Digest).ok_or_else(|| {
            JournalError::damaged(
                Position::Table { table: "merkle_chunks".to_owned(), row: chunk + 1 },
                "it is missing",
            )
        })
    }

    /// Up to `limit` kept checkpoints, from a count on.
    ///
    /// # Errors
    /// What reading failed with.
    pub fn checkpoints(&self, from_count: u64, limit: usize) -> Result<Vec<SignedCheckpoint>, JournalError> {
        let id = self.id()?;
        let mut statement = self.connection.prepare_cached(
            "SELECT count, head, merkle_root, at, key_id, signature FROM checkpoints WHERE count >= ?1 ORDER BY count LIMIT ?2",
        )?;
        let rows = statement
            .query_map((to_sql(from_count), to_sql(limit as u64)), |row| SignedCheckpoint::from_row(id, row))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    fn complete(&self, rows: Vec<RawRecord>, found: &mut Vec<StoredRecord>) -> Result<(), JournalError> {
        for row in rows {
            found.push(row.complete(&self.artifacts)?);
        }
        Ok(())
    }

    fn in_segment<T>(
        &self,
        segment: &SegmentRow,
        read: impl FnOnce(&Connection) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        self.segments.with(&self.layout, segment, read)
    }
}

fn select(connection: &Connection, condition: &str, values: impl Params) -> Result<Vec<RawRecord>, JournalError> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM records {condition}"))?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(row::decode(row)??);
    }
    Ok(found)
}

fn hashes_in(connection: &Connection, from: u64, to: u64, hashes: &mut Vec<Digest>) -> Result<(), JournalError> {
    let mut statement =
        connection.prepare_cached("SELECT seq, hash FROM records WHERE seq >= ?1 AND seq < ?2 ORDER BY seq")?;
    let mut rows = statement.query((to_sql(from), to_sql(to)))?;
    let mut expected = from;
    while let Some(row) = rows.next()? {
        let seq = to_u64(row.get(0)?);
        if seq != expected {
            return Err(JournalError::damaged(Position::Record { seq: expected }, "it is missing"));
        }
        hashes.push(Digest(row.get(1)?));
        expected += 1;
    }
    Ok(())
}
