//! Restores on the log: when each was, which key signed before it and which since, and whether a person has acknowledged it.
//!
//! A restore lets another key sign and lets the tables' digests begin anew, and its note can be written by whoever can write to the state root. So each one is
//! a record, is reported at every start and by verification until `palyra journal accept-restore` adds a second record, and a change of the key is named by
//! verification for good.

use std::fs;
use std::io;

use palyra_common::{Digest, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};

use crate::convert::{to_sql, to_u64};
use crate::error::JournalError;
use crate::layout::{Layout, write_atomically};
use crate::projection::{Projection, ProjectionError};
use crate::record::{NewRecord, StoredRecord};

/// The kind of the record that a journal was restored, appended at the first start after it.
pub const RESTORED_KIND: &str = "journal.restored";
/// The kind of the record that a person acknowledged restores.
pub const RESTORE_ACCEPTED_KIND: &str = "journal.restore_accepted";

/// A restore on the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// The record that says so.
    pub seq: u64,
    /// When it was restored.
    pub restored_at: Timestamp,
    /// The key that signs since.
    pub key_id: Digest,
    /// The key that signed last before.
    pub former_key_id: Option<Digest>,
    /// The record of the person's word, if it was given.
    pub accepted_seq: Option<u64>,
}

impl Restore {
    /// Whether another key took over.
    #[must_use]
    pub fn replaced_key(&self) -> bool {
        self.former_key_id.is_none_or(|former| former != self.key_id)
    }

    /// In one line, for a person.
    pub(crate) fn describe(&self) -> String {
        match self.former_key_id {
            Some(former) if former == self.key_id => "the journal was restored from a backup".to_owned(),
            Some(former) => format!("another signing key took over: before {former}, now {}", self.key_id),
            None => format!("another signing key took over: now {}, the one before is unknown", self.key_id),
        }
    }

    fn of(record: &StoredRecord) -> Result<Self, ProjectionError> {
        let said: Restored = parsed(record)?;
        let Restored { restored_at, key_id, former_key_id } = said;
        Ok(Self { seq: record.seq, restored_at, key_id, former_key_id, accepted_seq: None })
    }

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let former: Option<[u8; 32]> = row.get(3)?;
        let accepted: Option<i64> = row.get(4)?;
        Ok(Self {
            seq: to_u64(row.get(0)?),
            restored_at: Timestamp(row.get(1)?),
            key_id: Digest(row.get(2)?),
            former_key_id: former.map(Digest),
            accepted_seq: accepted.map(to_u64),
        })
    }
}

/// What [`RESTORED_KIND`] says that counts here.
#[derive(Debug, Deserialize)]
struct Restored {
    restored_at: Timestamp,
    key_id: Digest,
    former_key_id: Option<Digest>,
}

/// What [`RESTORE_ACCEPTED_KIND`] says: every restore up to this record was acknowledged.
#[derive(Debug, Serialize, Deserialize)]
struct Accepted {
    through_seq: u64,
    key_id: Digest,
}

fn parsed<T: serde::de::DeserializeOwned>(record: &StoredRecord) -> Result<T, ProjectionError> {
    serde_json::from_slice(&record.payload).map_err(|error| ProjectionError::Refused(error.to_string()))
}

/// Takes a record into a list of restores in the order of the log; other kinds change nothing.
pub(crate) fn note(restores: &mut Vec<Restore>, record: &StoredRecord) -> Result<(), ProjectionError> {
    if record.kind == RESTORED_KIND {
        restores.push(Restore::of(record)?);
    } else if record.kind == RESTORE_ACCEPTED_KIND {
        let Accepted { through_seq, .. } = parsed(record)?;
        for restore in restores.iter_mut().filter(|one| one.accepted_seq.is_none() && one.seq <= through_seq) {
            restore.accepted_seq = Some(record.seq);
        }
    }
    Ok(())
}

/// The journal's own projection: the restores on the log, so that a start need not read all of it.
#[derive(Debug)]
pub(crate) struct Restores;

impl Restores {
    /// Restores that nobody has acknowledged.
    pub(crate) fn unacknowledged(connection: &Connection) -> rusqlite::Result<Vec<Restore>> {
        let mut statement = connection.prepare(
            "SELECT seq, restored_at, key_id, former_key_id, accepted_seq FROM restores
             WHERE accepted_seq IS NULL ORDER BY seq",
        )?;
        let rows = statement.query_map([], Restore::from_row)?;
        rows.collect()
    }

    /// The record since which this key signs; none if no restore on the log made it the key, or no table says so yet.
    pub(crate) fn signs_since(connection: &Connection, key: Digest) -> rusqlite::Result<Option<u64>> {
        let exists: bool = connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'restores')",
            [],
            |row| row.get(0),
        )?;
        if !exists {
            return Ok(None);
        }
        let newest = "SELECT seq, key_id FROM restores ORDER BY seq DESC LIMIT 1";
        let newest = connection.query_row(newest, [], |row| Ok((to_u64(row.get(0)?), Digest(row.get(1)?)))).optional();
        Ok(newest?.filter(|(_, id)| *id == key).map(|(seq, _)| seq))
    }
}

impl Projection for Restores {
    fn name(&self) -> &'static str {
        "restores"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["restores"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE restores (
                seq INTEGER PRIMARY KEY NOT NULL, restored_at INTEGER NOT NULL, key_id BLOB NOT NULL,
                former_key_id BLOB, accepted_seq INTEGER
            ) STRICT",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        if record.kind == RESTORED_KIND {
            let Restore { seq, restored_at, key_id, former_key_id, .. } = Restore::of(record)?;
            connection
                .prepare_cached(
                    "INSERT INTO restores (seq, restored_at, key_id, former_key_id) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![to_sql(seq), restored_at.0, key_id.0, former_key_id.map(|id| id.0)])?;
        } else if record.kind == RESTORE_ACCEPTED_KIND {
            let Accepted { through_seq, .. } = parsed(record)?;
            connection
                .prepare_cached("UPDATE restores SET accepted_seq = ?1 WHERE accepted_seq IS NULL AND seq <= ?2")?
                .execute(params![to_sql(record.seq), to_sql(through_seq)])?;
        }
        Ok(())
    }
}

/// A person's word that the restores up to a record are known; lies in the state root until the next start puts it on the log.
///
/// Whoever can write to the state root can write it too. It ends a warning and never more: it counts for restores that are on the log already, and what it did is
/// itself on the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Acknowledgement {
    /// The last restore that the person was shown.
    pub(crate) through_seq: u64,
    /// The key that signs since.
    pub(crate) key_id: Digest,
}

impl Acknowledgement {
    pub(crate) fn read(layout: &Layout) -> Result<Option<Self>, JournalError> {
        let path = layout.restore_acknowledgement();
        match fs::read(&path) {
            // A file that says nothing acknowledges nothing.
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(JournalError::file("read", path, error)),
        }
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<(), JournalError> {
        let path = layout.restore_acknowledgement();
        let bytes = serde_json::to_vec_pretty(self).map_err(|e| JournalError::file("write", &path, e.into()))?;
        write_atomically(&path, 0o600, &bytes).map_err(|e| JournalError::file("write", path, e))
    }

    pub(crate) fn remove(layout: &Layout) -> Result<(), JournalError> {
        let path = layout.restore_acknowledgement();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(JournalError::file("remove", path, error)),
            _ => Ok(()),
        }
    }

    /// The record of it, if it is about any of these restores and about the key that they led to.
    pub(crate) fn record(&self, open: &[Restore], at: Timestamp) -> Result<Option<NewRecord>, JournalError> {
        let meant = open.iter().rev().find(|restore| restore.seq <= self.through_seq);
        let Some(meant) = meant.filter(|restore| restore.key_id == self.key_id) else { return Ok(None) };
        let payload = Accepted { through_seq: meant.seq, key_id: self.key_id };
        let payload = serde_json::to_vec(&payload).map_err(|error| JournalError::invalid(error.to_string()))?;
        Ok(Some(NewRecord::new(RESTORE_ACCEPTED_KIND, at, payload)))
    }
}
