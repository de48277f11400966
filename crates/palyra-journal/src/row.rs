//! Records as rows. Reading assumes nothing about a row: a damaged file can hold any type in any column.

use std::borrow::Cow;

use palyra_common::{Digest, RunId, SessionId, Timestamp};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use crate::artifacts::ArtifactStore;
use crate::convert::to_sql;
use crate::error::JournalError;
use crate::position::Position;
use crate::record::StoredRecord;

/// The columns of a record in the order that [`decode`] reads.
pub(crate) const COLUMNS: &str = "seq, at, kind, session_id, run_id, run_seq, payload, artifact, prev_hash, hash";

const INSERT: &str =
    "INSERT INTO records (seq, at, kind, session_id, run_id, run_seq, payload, artifact, prev_hash, hash, seal)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

/// Writes a record; with an artifact the payload is not in the row. The last record of a batch has a seal.
pub(crate) fn insert(
    connection: &Connection,
    record: &StoredRecord,
    artifact: Option<&Digest>,
    seal: Option<[u8; 32]>,
) -> rusqlite::Result<()> {
    let payload = if artifact.is_some() { None } else { Some(record.payload.as_slice()) };
    connection.prepare_cached(INSERT)?.execute(params![
        to_sql(record.seq),
        record.at.0,
        record.kind,
        record.session_id.map(|id| id.to_u128().to_be_bytes()),
        record.run_id.map(|id| id.to_u128().to_be_bytes()),
        record.run_seq.map(to_sql),
        payload,
        artifact.map(|digest| digest.0),
        record.prev_hash.0,
        record.hash.0,
        seal,
    ])?;
    Ok(())
}

/// A row as it was read; the payload may still lie in the artifact store.
#[derive(Debug, Clone)]
pub(crate) struct RawRecord {
    pub(crate) record: StoredRecord,
    pub(crate) artifact: Option<Digest>,
}

impl RawRecord {
    /// The record with its payload.
    pub(crate) fn complete(mut self, artifacts: &ArtifactStore) -> Result<StoredRecord, JournalError> {
        if let Some(digest) = &self.artifact {
            self.record.payload = artifacts.get(digest)?;
        }
        Ok(self.record)
    }

    /// The digest that the record's hash covers.
    pub(crate) fn payload_digest(&self) -> Digest {
        self.artifact.unwrap_or_else(|| Digest::of(&self.record.payload))
    }
}

/// A row that does not have the shape of a record.
#[derive(Debug, Clone)]
pub(crate) struct Misshapen {
    pub(crate) seq: u64,
    pub(crate) reason: String,
}

impl From<Misshapen> for JournalError {
    fn from(row: Misshapen) -> Self {
        Self::damaged(Position::Record { seq: row.seq }, row.reason)
    }
}

/// Reads the columns of [`COLUMNS`].
pub(crate) fn decode(row: &Row<'_>) -> rusqlite::Result<Result<RawRecord, Misshapen>> {
    let seq = match row.get_ref(0)? {
        ValueRef::Integer(seq) => u64::try_from(seq).unwrap_or(0),
        _ => 0,
    };
    let wrong = |column: &str| Misshapen { seq, reason: format!("its column `{column}` cannot be read") };
    let columns = Columns {
        at: row.get_ref(1)?,
        kind: row.get_ref(2)?,
        session_id: row.get_ref(3)?,
        run_id: row.get_ref(4)?,
        run_seq: row.get_ref(5)?,
        payload: row.get_ref(6)?,
        artifact: row.get_ref(7)?,
        prev_hash: row.get_ref(8)?,
        hash: row.get_ref(9)?,
    };
    Ok(columns.decode(seq).map_err(wrong))
}

struct Columns<'a> {
    at: ValueRef<'a>,
    kind: ValueRef<'a>,
    session_id: ValueRef<'a>,
    run_id: ValueRef<'a>,
    run_seq: ValueRef<'a>,
    payload: ValueRef<'a>,
    artifact: ValueRef<'a>,
    prev_hash: ValueRef<'a>,
    hash: ValueRef<'a>,
}

impl Columns<'_> {
    fn decode(&self, seq: u64) -> Result<RawRecord, &'static str> {
        let ValueRef::Integer(at) = self.at else { return Err("at") };
        let ValueRef::Text(kind) = self.kind else { return Err("kind") };
        let kind = std::str::from_utf8(kind).map_err(|_| "kind")?;
        let session_id = optional_bytes::<16>(self.session_id).ok_or("session_id")?;
        let run_id = optional_bytes::<16>(self.run_id).ok_or("run_id")?;
        let run_seq = match self.run_seq {
            ValueRef::Null => None,
            ValueRef::Integer(n) => Some(u64::try_from(n).map_err(|_| "run_seq")?),
            _ => return Err("run_seq"),
        };
        let artifact = optional_bytes::<32>(self.artifact).ok_or("artifact")?.map(Digest);
        let payload = match (self.payload, artifact) {
            (ValueRef::Blob(bytes), None) => bytes.to_vec(),
            (ValueRef::Null, Some(_)) => Vec::new(),
            _ => return Err("payload"),
        };
        let prev_hash = optional_bytes(self.prev_hash).flatten().ok_or("prev_hash")?;
        let hash = optional_bytes(self.hash).flatten().ok_or("hash")?;
        let record = StoredRecord {
            seq,
            kind: Cow::Owned(kind.to_owned()),
            at: Timestamp(at),
            session_id: session_id.map(|b| SessionId::from_u128(u128::from_be_bytes(b))),
            run_id: run_id.map(|b| RunId::from_u128(u128::from_be_bytes(b))),
            run_seq,
            payload,
            hash: Digest(hash),
            prev_hash: Digest(prev_hash),
        };
        Ok(RawRecord { record, artifact })
    }
}

/// `None` if the value is neither null nor a blob of exactly this length.
fn optional_bytes<const N: usize>(value: ValueRef<'_>) -> Option<Option<[u8; N]>> {
    match value {
        ValueRef::Null => Some(None),
        ValueRef::Blob(bytes) => bytes.try_into().ok().map(Some),
        _ => None,
    }
}
