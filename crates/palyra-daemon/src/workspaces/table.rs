//! What the journal has about granted directories.

use palyra_common::Timestamp;
use palyra_journal::rusqlite::{Connection, params};
use palyra_journal::{Projection, ProjectionError, StoredRecord, rusqlite};
use serde::{Deserialize, Serialize};

pub(crate) const CHANGED: &str = "workspace.changed";

/// Payload of a `workspace.changed` record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Changed {
    /// A principal may work below a directory.
    Granted { principal: String, path: String, by: String, at: Timestamp },
    /// It may not any more.
    Revoked { principal: String, path: String, by: String, at: Timestamp },
}

/// A directory as it was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) principal: String,
    pub(crate) path: String,
    pub(crate) by: String,
    pub(crate) at: Timestamp,
}

/// The table of grants in force.
pub(crate) struct WorkspaceGrants;

impl Projection for WorkspaceGrants {
    fn name(&self) -> &'static str {
        "workspace_grants"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["workspace_grants"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE workspace_grants (
                principal TEXT NOT NULL, path TEXT NOT NULL, granted_by TEXT NOT NULL, at INTEGER NOT NULL,
                PRIMARY KEY (principal, path)
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        if record.kind.as_ref() != CHANGED {
            return Ok(());
        }
        let changed = serde_json::from_slice(&record.payload)
            .map_err(|error| ProjectionError::Refused(format!("record {} does not read: {error}", record.seq)))?;
        match changed {
            Changed::Granted { principal, path, by, at } => connection
                .prepare_cached("INSERT OR REPLACE INTO workspace_grants VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![principal, path, by, at.0])?,
            Changed::Revoked { principal, path, .. } => connection
                .prepare_cached("DELETE FROM workspace_grants WHERE principal = ?1 AND path = ?2")?
                .execute(params![principal, path])?,
        };
        Ok(())
    }
}

/// The grants in force.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Granted>> {
    connection
        .prepare_cached("SELECT principal, path, granted_by, at FROM workspace_grants")?
        .query_map([], |row| {
            Ok(Granted { principal: row.get(0)?, path: row.get(1)?, by: row.get(2)?, at: Timestamp(row.get(3)?) })
        })?
        .collect()
}
