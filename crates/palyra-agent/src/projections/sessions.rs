//! Sessions: conversations, by id and by key.

use palyra_common::{SessionId, Timestamp};
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};

use super::{parse, typed};
use crate::tape::kind;

/// Payload of a `session.created` record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SessionCreated {
    pub(crate) session_id: SessionId,
    pub(crate) key: Option<String>,
    pub(crate) title: String,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session_id: SessionId,
    /// The caller's own name for it.
    pub key: Option<String>,
    /// The beginning of its first task.
    pub title: String,
    /// When it began.
    pub created_at: Timestamp,
    /// When its newest run was accepted.
    pub updated_at: Timestamp,
    /// How many runs it has.
    pub runs: u64,
}

pub(super) struct Sessions;

impl Projection for Sessions {
    fn name(&self) -> &'static str {
        "sessions"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["sessions"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE sessions (
                session_id TEXT PRIMARY KEY NOT NULL, key TEXT UNIQUE, title TEXT NOT NULL,
                created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, runs INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::SESSION_CREATED => {
                let created: SessionCreated = parse(record)?;
                connection.prepare_cached("INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?4, 0)")?.execute(params![
                    created.session_id.to_string(),
                    created.key,
                    created.title,
                    record.at.0
                ])?;
            }
            kind::RUN_ACCEPTED => {
                if let Some(session) = record.session_id {
                    connection
                        .prepare_cached("UPDATE sessions SET runs = runs + 1, updated_at = ?2 WHERE session_id = ?1")?
                        .execute(params![session.to_string(), record.at.0])?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

const COLUMNS: &str = "session_id, key, title, created_at, updated_at, runs";

fn read(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        session_id: typed(row, 0)?,
        key: row.get(1)?,
        title: row.get(2)?,
        created_at: Timestamp(row.get(3)?),
        updated_at: Timestamp(row.get(4)?),
        runs: u64::try_from(row.get::<_, i64>(5)?).unwrap_or(0),
    })
}

pub(crate) fn session(connection: &Connection, id: SessionId) -> rusqlite::Result<Option<SessionRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE session_id = ?1"))?
        .query_row([id.to_string()], read)
        .optional()
}

pub(crate) fn session_by_key(connection: &Connection, key: &str) -> rusqlite::Result<Option<SessionRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE key = ?1"))?
        .query_row([key], read)
        .optional()
}

/// Newest first, older than `before`.
pub(crate) fn sessions(
    connection: &Connection,
    before: Option<SessionId>,
    limit: u32,
) -> rusqlite::Result<Vec<SessionRow>> {
    let before = before.map_or_else(|| "~".to_owned(), |id| id.to_string());
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM sessions WHERE session_id < ?1 ORDER BY session_id DESC LIMIT ?2"
        ))?
        .query_map(params![before, limit], read)?
        .collect()
}
