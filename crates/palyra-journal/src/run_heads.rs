//! Where the tape of each run lies in the log, and how it ends.

use palyra_common::RunId;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::convert::{to_sql, to_u64};
use crate::error::JournalError;
use crate::merkle::CHUNK;
use crate::projection::{Projection, ProjectionError};
use crate::record::StoredRecord;
use crate::segments::{self, SegmentRow};

/// The journal's own projection: where in the log the records of each run lie. It knows the end to the chunk only, so that most records of a
/// run leave its row, and the page it is on, as they are.
#[derive(Debug)]
pub(crate) struct RunHeads;

impl RunHeads {
    /// The range of the log that holds a run's tape.
    pub(crate) fn get(connection: &Connection, run: RunId) -> rusqlite::Result<Option<RunHead>> {
        connection
            .prepare_cached("SELECT first_seq, last_chunk FROM run_heads WHERE run_id = ?1")?
            .query_row([run.to_u128().to_be_bytes()], |row| {
                let last_chunk = to_u64(row.get(1)?);
                Ok(RunHead { first_seq: to_u64(row.get(0)?), last_seq_at_most: (last_chunk + 1) * CHUNK })
            })
            .optional()
    }
}

/// See [`RunHeads`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunHead {
    pub(crate) first_seq: u64,
    /// No record of the run lies after this one.
    pub(crate) last_seq_at_most: u64,
}

impl Projection for RunHeads {
    fn name(&self) -> &'static str {
        "run_heads"
    }
    fn version(&self) -> u32 {
        2
    }
    fn tables(&self) -> &'static [&'static str] {
        &["run_heads"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE run_heads (
                run_id BLOB PRIMARY KEY NOT NULL, first_seq INTEGER NOT NULL, last_chunk INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        let (Some(run), Some(run_seq)) = (record.run_id, record.run_seq) else { return Ok(()) };
        let sql = if run_seq == 1 {
            "INSERT INTO run_heads (run_id, first_seq, last_chunk) VALUES (?1, ?2, ?3)"
        } else {
            "UPDATE run_heads SET last_chunk = ?3 WHERE run_id = ?1 AND last_chunk < ?3 AND ?2 > 0"
        };
        let chunk = (record.seq - 1) / CHUNK;
        connection.prepare_cached(sql)?.execute(params![
            run.to_u128().to_be_bytes(),
            to_sql(record.seq),
            to_sql(chunk)
        ])?;
        Ok(())
    }
}

/// The last number on a run's tape; zero for a run that has none. `last_in` says it for a sealed segment.
pub(crate) fn last_run_seq(
    live: &Connection,
    run: RunId,
    last_in: impl Fn(&SegmentRow) -> Result<Option<u64>, JournalError>,
) -> Result<u64, JournalError> {
    // Segments take the oldest records, so a run that is in the live table has its last record there.
    if let Some(last) = last_number(live, run)? {
        return Ok(last);
    }
    let Some(head) = RunHeads::get(live, run)? else { return Ok(0) };
    let mut last = 0;
    let mut from = head.first_seq;
    while let Some(segment) = segments::holding_or_after(live, from)? {
        if segment.first_seq > head.last_seq_at_most {
            break;
        }
        last = last_in(&segment)?.unwrap_or(last);
        from = segment.last_seq + 1;
    }
    Ok(last)
}

/// The last number of a run in one file.
pub(crate) fn last_number(connection: &Connection, run: RunId) -> Result<Option<u64>, JournalError> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT MAX(run_seq) FROM records WHERE run_id = ?1 AND run_seq IS NOT NULL")?
        .query_row([run.to_u128().to_be_bytes()], |row| row.get(0))?;
    Ok(last.map(to_u64))
}
