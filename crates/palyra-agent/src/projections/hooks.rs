//! Hooks: which plugins are bound to what, and which runs still owe their hooks the news that they are over.

use palyra_common::{RunId, RunLifecycleHookPhase, Timestamp};
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};

use super::{json, parse, typed};
use crate::hooks::{HookBindingRecord, HookSwitch};
use crate::machine::Action;
use crate::tape::{TapeEntry, kind as tape};

/// One binding, with who made it so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookBindingRow {
    /// The binding.
    pub binding: HookBindingRecord,
    /// Who changed it last.
    pub changed_by: String,
    /// When.
    pub changed_at: Timestamp,
}

/// Kinds of records about bindings.
pub(crate) mod kind {
    pub(crate) const SET: &str = "hook_binding.set";
    pub(crate) const SWITCHED: &str = "hook_binding.switched";
    pub(crate) const REMOVED: &str = "hook_binding.removed";
}

/// Payload of a `hook_binding.set` record: made, or replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BindingSet {
    pub(crate) binding: HookBindingRecord,
    pub(crate) by: String,
}

/// Payload of a `hook_binding.switched` record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BindingSwitched {
    pub(crate) id: String,
    pub(crate) to: HookSwitch,
    pub(crate) by: String,
}

/// Payload of a `hook_binding.removed` record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BindingRemoved {
    pub(crate) id: String,
    pub(crate) by: String,
}

pub(super) struct Hooks;

impl Projection for Hooks {
    fn name(&self) -> &'static str {
        "hooks"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["hook_bindings", "hooks_due"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE hook_bindings (
                id TEXT PRIMARY KEY NOT NULL, binding TEXT NOT NULL, enabled INTEGER NOT NULL,
                changed_by TEXT NOT NULL, changed_at INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE hooks_due (run_id TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::SET => {
                let BindingSet { binding, by } = parse(record)?;
                connection
                    .prepare_cached("INSERT OR REPLACE INTO hook_bindings VALUES (?1, ?2, ?3, ?4, ?5)")?
                    .execute(params![binding.id, json(&binding)?, binding.enabled, by, record.at.0])?;
            }
            kind::SWITCHED => {
                let BindingSwitched { id, to, by } = parse(record)?;
                connection
                    .prepare_cached(
                        "UPDATE hook_bindings SET enabled = ?2, changed_by = ?3, changed_at = ?4 WHERE id = ?1",
                    )?
                    .execute(params![id, to == HookSwitch::Enabled, by, record.at.0])?;
            }
            kind::REMOVED => {
                let BindingRemoved { id, .. } = parse(record)?;
                connection.prepare_cached("DELETE FROM hook_bindings WHERE id = ?1")?.execute([id])?;
            }
            tape::HOOKS_RUN => {
                if let (TapeEntry::Action(Action::RunHooks { phase: RunLifecycleHookPhase::AfterRun, .. }), Some(run)) =
                    (parse(record)?, record.run_id)
                {
                    connection
                        .prepare_cached("INSERT OR REPLACE INTO hooks_due VALUES (?1)")?
                        .execute([run.to_string()])?;
                }
            }
            tape::HOOKS_NOTED => {
                if let Some(run) = record.run_id {
                    connection.prepare_cached("DELETE FROM hooks_due WHERE run_id = ?1")?.execute([run.to_string()])?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

const COLUMNS: &str = "binding, enabled, changed_by, changed_at";

fn read(row: &Row<'_>) -> rusqlite::Result<HookBindingRow> {
    let binding: String = row.get(0)?;
    let mut binding: HookBindingRecord = serde_json::from_str(&binding)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error)))?;
    binding.enabled = row.get(1)?;
    Ok(HookBindingRow { binding, changed_by: row.get(2)?, changed_at: Timestamp(row.get(3)?) })
}

pub(crate) fn hook_binding(connection: &Connection, id: &str) -> rusqlite::Result<Option<HookBindingRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM hook_bindings WHERE id = ?1"))?
        .query_row([id], read)
        .optional()
}

/// All bindings, by id.
pub(crate) fn hook_bindings(connection: &Connection) -> rusqlite::Result<Vec<HookBindingRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM hook_bindings ORDER BY id"))?
        .query_map([], read)?
        .collect()
}

/// Runs whose hooks were to be told that they are over, and were not.
pub(crate) fn hooks_due(connection: &Connection) -> rusqlite::Result<Vec<RunId>> {
    connection
        .prepare_cached("SELECT run_id FROM hooks_due ORDER BY run_id")?
        .query_map([], |row| typed(row, 0))?
        .collect()
}
