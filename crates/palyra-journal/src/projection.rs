//! Tables that are derived from the log and can always be built again from it.
//!
//! Owns the trait and the bookkeeping of which projection is in the database in which version. When records are applied is
//! the writer's business ([`crate::writer`]); comparing a projection with the log is [`crate::verify`]'s.

use std::sync::Arc;

use rusqlite::{Connection, params};
use thiserror::Error;

use crate::checkpoint::JournalId;
use crate::convert::to_sql;
use crate::error::JournalError;
use crate::position::Position;
use crate::reader::Reader;
use crate::record::{Head, StoredRecord};
use crate::restores::Restores;
use crate::run_heads::RunHeads;
use crate::table_digests::{self, Sum, TableDigests};

/// A column of this name in a derived table holds digests of artifacts, as text, that have to be there. Verification looks for them, also without the projection's
/// definition.
pub const KEPT_ARTIFACT: &str = "kept_artifact";

/// A set of tables that is a function of the log.
///
/// INVARIANT: `apply` depends on nothing but the record and the projection's own tables: no clock, no randomness, no
/// other table. Otherwise a rebuild gives other contents, and verification says so.
pub trait Projection: Send + Sync {
    /// A name that never changes.
    fn name(&self) -> &'static str;
    /// Raised whenever `create` or `apply` changes; the tables are then built again when the journal is opened.
    fn version(&self) -> u32;
    /// The tables that belong to this projection alone.
    fn tables(&self) -> &'static [&'static str];
    /// Makes the empty tables and their indexes.
    ///
    /// # Errors
    /// What the database said.
    fn create(&self, connection: &Connection) -> rusqlite::Result<()>;
    /// Takes in one record, in the transaction that appends it.
    ///
    /// # Errors
    /// A refusal rejects the batch the record belongs to. When the projection is built from the log, a record that it refuses is quarantined instead.
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError>;
}

/// Why a projection did not take a record.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProjectionError {
    /// The record contradicts what the projection holds.
    #[error("{0}")]
    Refused(String),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

impl ProjectionError {
    pub(crate) fn into_journal(self, projection: &'static str, seq: u64) -> JournalError {
        match self {
            Self::Refused(reason) => JournalError::ProjectionRefused { projection, seq, reason },
            // A constraint is the projection's way to refuse; anything else is the store's failure.
            Self::Database(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
                JournalError::ProjectionRefused { projection, seq, reason: error.to_string() }
            }
            Self::Database(error) => error.into(),
        }
    }
}

/// Tables that no projection may claim.
const OWN_TABLES: &[&str] = &[
    "meta",
    "records",
    "head",
    "checkpoints",
    "merkle_chunks",
    "projections",
    "segments",
    "table_digests",
    "quarantined",
];

/// The journal's own projections first, then those of the options.
pub(crate) fn with_own(projections: &[Arc<dyn Projection>]) -> Vec<Arc<dyn Projection>> {
    let own: [Arc<dyn Projection>; 2] = [Arc::new(RunHeads), Arc::new(Restores)];
    own.into_iter().chain(projections.iter().cloned()).collect()
}

/// Refuses sets of projections that would step on each other.
pub(crate) fn check(projections: &[Arc<dyn Projection>]) -> Result<(), JournalError> {
    let mut seen: Vec<&str> = OWN_TABLES.to_vec();
    for projection in projections {
        for table in projection.tables() {
            if seen.contains(table) || !is_plain_name(table) {
                return Err(JournalError::invalid(format!(
                    "projection `{}` may not own table `{table}`",
                    projection.name()
                )));
            }
            seen.push(table);
        }
    }
    Ok(())
}

/// Names that can be put into SQL without quoting questions.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// One row of the `projections` table.
#[derive(Debug, Clone)]
pub(crate) struct Registered {
    pub(crate) name: String,
    pub(crate) version: i64,
    pub(crate) tables: Vec<String>,
}

/// What the database says it holds.
pub(crate) fn registered(connection: &Connection) -> Result<Vec<Registered>, JournalError> {
    let mut statement = connection.prepare("SELECT name, version, tables FROM projections ORDER BY name")?;
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?)))?;
    let mut found = Vec::new();
    for row in rows {
        let (name, version, tables) = row?;
        let tables: Vec<String> = serde_json::from_str(&tables)
            .ok()
            .filter(|tables: &Vec<String>| tables.iter().all(|t| is_plain_name(t) && !OWN_TABLES.contains(&t.as_str())))
            .ok_or_else(|| {
                JournalError::damaged(
                    Position::Table { table: "projections".to_owned(), row: 0 },
                    format!("the tables of projection `{name}` are not a list of names"),
                )
            })?;
        found.push(Registered { name, version, tables });
    }
    Ok(found)
}

/// Brings the database to exactly these projections: what is gone, changed or wrong is dropped, what is new or wrong is built from the log.
/// Runs in one transaction, so a crash leaves the old tables.
pub(crate) fn reconcile(
    connection: &Connection,
    reader: &Reader,
    projections: &[Arc<dyn Projection>],
    wrong: &[&'static str],
    digests: &TableDigests,
    (id, head): (JournalId, Head),
) -> Result<(), JournalError> {
    let present = registered(connection)?;
    let keeps = |p: &Arc<dyn Projection>, r: &Registered| {
        p.name() == r.name && i64::from(p.version()) == r.version && !wrong.contains(&p.name())
    };
    let stale: Vec<_> = present.iter().filter(|r| !projections.iter().any(|p| keeps(p, r))).collect();
    let missing: Vec<_> = projections.iter().filter(|p| !present.iter().any(|r| keeps(p, r))).collect();
    if stale.is_empty() && missing.is_empty() {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    for registered in stale {
        for table in &registered.tables {
            transaction.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
            table_digests::forget(&transaction, table)?;
        }
        transaction.execute("DELETE FROM projections WHERE name = ?1", [&registered.name])?;
        transaction.execute("DELETE FROM quarantined WHERE projection = ?1", [&registered.name])?;
    }
    for projection in &missing {
        for table in projection.tables() {
            transaction.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
        }
        projection.create(&transaction)?;
        register(&transaction, projection.as_ref())?;
        for table in projection.tables() {
            digests.watch(&transaction, table, Sum::default())?;
        }
    }
    if !missing.is_empty() {
        tracing::info!(projections = ?missing.iter().map(|p| p.name()).collect::<Vec<_>>(), "rebuilding projections from the log");
        reader.for_each(1, &mut |record| {
            let snapshot = digests.snapshot();
            let refusals = apply_tolerantly(&transaction, &missing, &record, &mut || digests.restore(&snapshot))?;
            for (projection, reason) in refusals {
                tracing::error!(
                    projection,
                    seq = record.seq,
                    reason,
                    "a projection refuses a record of the log; it continues without it"
                );
                transaction.execute(
                    "INSERT INTO quarantined (projection, seq, reason) VALUES (?1, ?2, ?3)",
                    params![projection, to_sql(record.seq), reason],
                )?;
            }
            Ok(())
        })?;
    }
    table_digests::mark_built(&transaction)?;
    digests.store(&transaction, id, head)?;
    transaction.commit()?;
    Ok(())
}

/// Applies a record of the log to projections such that one that refuses it is left as it was and the others go on. `undone` is called whenever rows were taken
/// back. Returns who refused, and why.
pub(crate) fn apply_tolerantly(
    connection: &Connection,
    projections: &[&Arc<dyn Projection>],
    record: &StoredRecord,
    undone: &mut dyn FnMut(),
) -> Result<Vec<(&'static str, String)>, JournalError> {
    let mut refusals: Vec<(&'static str, String)> = Vec::new();
    'again: loop {
        connection.prepare_cached("SAVEPOINT record")?.execute([])?;
        for projection in projections {
            let name = projection.name();
            if refusals.iter().any(|(refused, _)| *refused == name) {
                continue;
            }
            match projection.apply(connection, record).map_err(|e| e.into_journal(name, record.seq)) {
                Ok(()) => {}
                Err(JournalError::ProjectionRefused { reason, .. }) => {
                    connection.execute_batch("ROLLBACK TO record; RELEASE record")?;
                    undone();
                    refusals.push((name, reason));
                    continue 'again;
                }
                Err(error) => return Err(error),
            }
        }
        connection.prepare_cached("RELEASE record")?.execute([])?;
        return Ok(refusals);
    }
}

/// Notes that a projection is in the database.
pub(crate) fn register(connection: &Connection, projection: &dyn Projection) -> Result<(), JournalError> {
    let tables = serde_json::to_string(projection.tables()).unwrap_or_default();
    connection.execute(
        "INSERT INTO projections (name, version, tables) VALUES (?1, ?2, ?3)",
        params![projection.name(), i64::from(projection.version()), tables],
    )?;
    Ok(())
}
