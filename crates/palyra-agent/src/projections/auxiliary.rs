//! Auxiliary tasks: where each stands and what came of it.

use palyra_common::{
    AuxiliaryTaskId, AuxiliaryTaskKind, AuxiliaryTaskState, Label, RunId, SessionId, StableErrorEnvelope, Timestamp,
};
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use palyra_models::{Answering, Usage};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use super::{from_json, json, parse, typed, typed_option};
use crate::engine::auxiliary::{TaskEnded, TaskPending, TaskRunning, kind};
use crate::machine::Cost;

/// One auxiliary task.
#[derive(Debug, Clone, PartialEq)]
pub struct AuxiliaryRow {
    /// The task.
    pub task_id: AuxiliaryTaskId,
    /// Its session.
    pub session_id: SessionId,
    /// The run it belongs to.
    pub run_id: Option<RunId>,
    /// Whose it is.
    pub owner: String,
    /// The agent it is for.
    pub agent: String,
    /// What is to be done.
    pub kind: AuxiliaryTaskKind,
    /// How far it has come.
    pub state: AuxiliaryTaskState,
    /// Label of what it was given, and of what it gave.
    pub label: Label,
    /// Output tokens that one answer may have.
    pub budget_tokens: u32,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Calls that it made.
    pub calls: u32,
    /// Who answered.
    pub answering: Option<Answering>,
    /// Tokens used.
    pub usage: Usage,
    /// What it cost.
    pub cost: Cost,
    /// What it gave, unless its run records that.
    pub output: Option<Value>,
    /// Why it gave nothing.
    pub error: Option<StableErrorEnvelope>,
}

/// Which auxiliary tasks to list.
#[derive(Debug, Clone, Default)]
pub struct AuxiliaryFilter {
    /// Of this owner only.
    pub owner: Option<String>,
    /// Of this session only.
    pub session_id: Option<SessionId>,
    /// Of this run only.
    pub run_id: Option<RunId>,
    /// In this state only.
    pub state: Option<AuxiliaryTaskState>,
    /// Older than this one.
    pub before: Option<AuxiliaryTaskId>,
    /// At most so many.
    pub limit: u32,
}

pub(super) struct AuxiliaryTasks;

impl Projection for AuxiliaryTasks {
    fn name(&self) -> &'static str {
        "auxiliary_tasks"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["auxiliary_tasks"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE auxiliary_tasks (
                task_id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, run_id TEXT, owner TEXT NOT NULL, agent TEXT NOT NULL,
                kind TEXT NOT NULL, state TEXT NOT NULL, label TEXT NOT NULL, budget_tokens INTEGER NOT NULL,
                created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER, calls INTEGER NOT NULL DEFAULT 0,
                answering TEXT, usage TEXT, cost TEXT, output TEXT, error TEXT
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX auxiliary_by_owner ON auxiliary_tasks (owner, task_id);
            CREATE INDEX auxiliary_by_session ON auxiliary_tasks (session_id, task_id);
            CREATE INDEX auxiliary_by_run ON auxiliary_tasks (run_id, task_id) WHERE run_id IS NOT NULL;
            CREATE INDEX auxiliary_unfinished ON auxiliary_tasks (task_id) WHERE state IN ('pending', 'running')",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::PENDING => {
                let task: TaskPending = parse(record)?;
                connection
                    .prepare_cached(
                        "INSERT INTO auxiliary_tasks (task_id, session_id, run_id, owner, agent, kind, state, label, budget_tokens, created_at)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7, ?8, ?9)",
                    )?
                    .execute(params![
                        task.task_id.to_string(),
                        task.session_id.to_string(),
                        task.run_id.map(|id| id.to_string()),
                        task.owner,
                        task.agent,
                        task.kind.as_str(),
                        json(&task.label)?,
                        task.budget_tokens,
                        record.at.0
                    ])?;
            }
            kind::RUNNING => {
                let task: TaskRunning = parse(record)?;
                connection
                    .prepare_cached("UPDATE auxiliary_tasks SET state = 'running', started_at = ?2 WHERE task_id = ?1")?
                    .execute(params![task.task_id.to_string(), record.at.0])?;
            }
            kind::SUCCEEDED | kind::FAILED | kind::CANCELLED => end(connection, record)?,
            _ => {}
        }
        Ok(())
    }
}

fn end(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let ended: TaskEnded = parse(record)?;
    connection
        .prepare_cached(
            "UPDATE auxiliary_tasks SET state = ?2, ended_at = ?3, calls = ?4, answering = ?5, usage = ?6, cost = ?7, output = ?8, error = ?9
             WHERE task_id = ?1",
        )?
        .execute(params![
            ended.task_id.to_string(),
            ended.state.as_str(),
            record.at.0,
            ended.bill.calls,
            ended.bill.answering.as_ref().map(json).transpose()?,
            json(&ended.bill.usage)?,
            json(&ended.bill.cost)?,
            ended.output.as_ref().map(json).transpose()?,
            ended.error.as_ref().map(json).transpose()?,
        ])?;
    Ok(())
}

const COLUMNS: &str = "task_id, session_id, run_id, owner, agent, kind, state, label, budget_tokens, created_at, started_at, ended_at, \
                       calls, answering, usage, cost, output, error";

fn read(row: &Row<'_>) -> rusqlite::Result<AuxiliaryRow> {
    Ok(AuxiliaryRow {
        task_id: typed(row, 0)?,
        session_id: typed(row, 1)?,
        run_id: typed_option(row, 2)?,
        owner: row.get(3)?,
        agent: row.get(4)?,
        kind: typed(row, 5)?,
        state: typed(row, 6)?,
        label: from_json(row, 7)?.ok_or(rusqlite::Error::InvalidQuery)?,
        budget_tokens: row.get(8)?,
        created_at: Timestamp(row.get(9)?),
        started_at: row.get::<_, Option<i64>>(10)?.map(Timestamp),
        ended_at: row.get::<_, Option<i64>>(11)?.map(Timestamp),
        calls: row.get(12)?,
        answering: from_json(row, 13)?,
        usage: from_json(row, 14)?.unwrap_or_default(),
        cost: from_json(row, 15)?.unwrap_or_default(),
        output: from_json(row, 16)?,
        error: from_json(row, 17)?,
    })
}

pub(crate) fn auxiliary_task(connection: &Connection, id: AuxiliaryTaskId) -> rusqlite::Result<Option<AuxiliaryRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM auxiliary_tasks WHERE task_id = ?1"))?
        .query_row([id.to_string()], read)
        .optional()
}

/// Newest first.
pub(crate) fn auxiliary_tasks(
    connection: &Connection,
    filter: &AuxiliaryFilter,
) -> rusqlite::Result<Vec<AuxiliaryRow>> {
    let (sql, values) = list(filter);
    connection.prepare_cached(&sql)?.query_map(rusqlite::params_from_iter(values), read)?.collect()
}

fn list(filter: &AuxiliaryFilter) -> (String, Vec<String>) {
    let wanted = [
        ("run_id = ", filter.run_id.map(|id| id.to_string())),
        ("session_id = ", filter.session_id.map(|id| id.to_string())),
        ("owner = ", filter.owner.clone()),
        ("state = ", filter.state.map(|state| state.as_str().to_owned())),
        ("task_id < ", filter.before.map(|id| id.to_string())),
    ];
    let (mut conditions, mut values) = (vec!["1".to_owned()], Vec::new());
    for (condition, value) in wanted {
        if let Some(value) = value {
            values.push(value);
            conditions.push(format!("{condition}?{}", values.len()));
        }
    }
    let conditions = conditions.join(" AND ");
    let sql = format!(
        "SELECT {COLUMNS} FROM auxiliary_tasks WHERE {conditions} ORDER BY task_id DESC LIMIT {}",
        filter.limit
    );
    (sql, values)
}

/// Tasks that have not ended.
pub(crate) fn unfinished_auxiliary(connection: &Connection) -> rusqlite::Result<Vec<AuxiliaryRow>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM auxiliary_tasks WHERE state IN ('pending', 'running') ORDER BY task_id"
        ))?
        .query_map([], read)?
        .collect()
}
