//! Which records are about a session itself, so that its story can be told without reading the whole log. The one it began with is in the table
//! of sessions; most sessions never have another.

use palyra_common::SessionId;
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, params};

use crate::session::kind;

pub(super) struct SessionLog;

impl Projection for SessionLog {
    fn name(&self) -> &'static str {
        "session_log"
    }
    fn version(&self) -> u32 {
        2
    }
    fn tables(&self) -> &'static [&'static str] {
        &["session_log"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE session_log (
                session_id TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (session_id, seq)
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        let kept = record.kind.starts_with("session.") && record.kind != kind::CREATED;
        if let (Some(session), true) = (record.session_id, kept) {
            let seq = i64::try_from(record.seq).unwrap_or(i64::MAX);
            connection
                .prepare_cached("INSERT INTO session_log VALUES (?1, ?2)")?
                .execute(params![session.to_string(), seq])?;
        }
        Ok(())
    }
}

/// The numbers of the records about a session after its first one, oldest first.
pub(crate) fn session_log(connection: &Connection, id: SessionId) -> rusqlite::Result<Vec<u64>> {
    connection
        .prepare_cached("SELECT seq FROM session_log WHERE session_id = ?1 ORDER BY seq")?
        .query_map([id.to_string()], |row| row.get::<_, i64>(0).map(|seq| u64::try_from(seq).unwrap_or(0)))?
        .collect()
}
