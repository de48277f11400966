//! What happened to skills and publishers, on the journal and in a table derived from it.
//!
//! There are few such events, so the index is made anew from all of them at each start.

use palyra_common::Timestamp;
use palyra_journal::rusqlite::{Connection, params};
use palyra_journal::{NewRecord, Projection, ProjectionError, StoredRecord, rusqlite};
use palyra_skills::SkillEvent;
use serde::{Deserialize, Serialize};

/// Kind of the records.
const CHANGED: &str = "skill.changed";

/// One thing that happened, and who did it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SkillChanged {
    /// Who did it; the daemon itself for what it found in an audit.
    pub(crate) by: String,
    /// What happened.
    pub(crate) event: SkillEvent,
}

/// The record of an event.
pub(crate) fn record(at: Timestamp, by: &str, event: &SkillEvent) -> Result<NewRecord, serde_json::Error> {
    let changed = SkillChanged { by: by.to_owned(), event: event.clone() };
    Ok(NewRecord::new(CHANGED, at, serde_json::to_vec(&changed)?))
}

/// The table.
pub(crate) struct SkillLog;

impl Projection for SkillLog {
    fn name(&self) -> &'static str {
        "skills"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["skill_events"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE skill_events (seq INTEGER PRIMARY KEY NOT NULL, at INTEGER NOT NULL, event TEXT NOT NULL) STRICT",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        if record.kind.as_ref() != CHANGED {
            return Ok(());
        }
        let unreadable = |error: serde_json::Error| {
            ProjectionError::Refused(format!("record {} does not read: {error}", record.seq))
        };
        let changed: SkillChanged = serde_json::from_slice(&record.payload).map_err(unreadable)?;
        let event = serde_json::to_string(&changed.event).map_err(unreadable)?;
        let seq = i64::try_from(record.seq).unwrap_or(i64::MAX);
        connection.prepare_cached("INSERT INTO skill_events VALUES (?1, ?2, ?3)")?.execute(params![
            seq,
            record.at.0,
            event
        ])?;
        Ok(())
    }
}

/// Everything that happened, oldest first.
pub(crate) fn events(connection: &Connection) -> rusqlite::Result<Vec<(Timestamp, SkillEvent)>> {
    connection
        .prepare_cached("SELECT at, event FROM skill_events ORDER BY seq")?
        .query_map([], |row| {
            let text: String = row.get(1)?;
            let event = serde_json::from_str(&text).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, Box::new(error))
            })?;
            Ok((Timestamp(row.get(0)?), event))
        })?
        .collect()
}
