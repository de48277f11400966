//! Agents: which ways of working there are.

use palyra_common::Timestamp;
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};

use super::{json, parse};
use crate::agents::{AgentProfile, AgentRow};

/// Kinds of records about agents.
pub(crate) mod kind {
    pub(crate) const SET: &str = "agent.set";
    pub(crate) const REMOVED: &str = "agent.removed";
}

/// Payload of an `agent.set` record: made, or replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentSet {
    pub(crate) agent: AgentProfile,
    pub(crate) by: String,
}

/// Payload of an `agent.removed` record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentRemoved {
    pub(crate) agent_id: String,
    pub(crate) by: String,
}

pub(super) struct Agents;

impl Projection for Agents {
    fn name(&self) -> &'static str {
        "agents"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["agents"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE agents (
                agent_id TEXT PRIMARY KEY NOT NULL, profile TEXT NOT NULL, version INTEGER NOT NULL, created_at INTEGER NOT NULL,
                updated_at INTEGER NOT NULL, updated_by TEXT NOT NULL
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::SET => {
                let AgentSet { agent, by } = parse(record)?;
                connection
                    .prepare_cached(
                        "INSERT INTO agents VALUES (?1, ?2, ?3, ?4, ?4, ?5)
                         ON CONFLICT DO UPDATE SET profile = excluded.profile, version = excluded.version,
                            updated_at = excluded.updated_at, updated_by = excluded.updated_by",
                    )?
                    .execute(params![
                        agent.agent_id,
                        json(&agent)?,
                        i64::try_from(record.seq).unwrap_or(i64::MAX),
                        record.at.0,
                        by
                    ])?;
            }
            kind::REMOVED => {
                let AgentRemoved { agent_id, .. } = parse(record)?;
                connection.prepare_cached("DELETE FROM agents WHERE agent_id = ?1")?.execute([agent_id])?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// All agents, by id; there are few.
pub(crate) fn agents(connection: &Connection) -> rusqlite::Result<Vec<AgentRow>> {
    connection
        .prepare_cached("SELECT profile, version, created_at, updated_at, updated_by FROM agents ORDER BY agent_id")?
        .query_map([], read)?
        .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<AgentRow> {
    let profile: String = row.get(0)?;
    let profile = serde_json::from_str(&profile)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error)))?;
    Ok(AgentRow {
        profile,
        version: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
        created_at: Timestamp(row.get(2)?),
        updated_at: Timestamp(row.get(3)?),
        updated_by: row.get(4)?,
    })
}
