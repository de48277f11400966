//! What happened to skills and publishers, on the journal and in a table derived from it.
//!
//! There are few such events, so the index is made anew from all of them at each start.

use palyra_common::Timestamp;
use palyra_journal::rusqlite::{Connection, params};
use palyra_journal::{JournalError, NewRecord, Projection, ProjectionError, Reader, StoredRecord, rusqlite};
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
    /// How many more events of the same commit follow; daemons from before this field said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) following: Option<usize>,
}

/// The records of events that are committed together.
pub(crate) fn records(at: Timestamp, by: &str, events: &[SkillEvent]) -> Result<Vec<NewRecord>, serde_json::Error> {
    let following = (0..events.len()).rev();
    let records = events.iter().zip(following).map(|(event, following)| {
        let changed = SkillChanged { by: by.to_owned(), event: event.clone(), following: Some(following) };
        Ok(NewRecord::new(CHANGED, at, serde_json::to_vec(&changed)?))
    });
    records.collect()
}

/// The events of the commit whose first one is the record at `seq`; none if that is not known, because another daemon wrote it or it is no such commit.
pub(crate) fn committed_at(reader: &Reader, seq: u64) -> Result<Option<Vec<SkillEvent>>, JournalError> {
    let mut events = Vec::new();
    for seq in seq.. {
        let record = reader.record(seq)?;
        if record.kind.as_ref() != CHANGED {
            return Ok(None);
        }
        let Ok(changed) = serde_json::from_slice::<SkillChanged>(&record.payload) else { return Ok(None) };
        events.push(changed.event);
        match changed.following {
            Some(0) => return Ok(Some(events)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(None)
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
