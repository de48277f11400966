//! What people wrote to sessions: what still waits for its turn, and what became of the rest.

use palyra_common::{InputMode, RunId, SessionId, Timestamp};
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{from_json, json, parse, typed, typed_option};
use crate::session::{InputGiven, InputWithdrawn, InputsFailed, InputsReturned, InputsTaken, Taken, kind};
use crate::spec::OutsideSender;
use crate::started_with::StartedWith;

/// One input that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedInput {
    /// Its name within the session.
    pub input_id: String,
    /// The session.
    pub session_id: SessionId,
    /// What was written.
    pub text: String,
    /// What is to become of it.
    pub mode: InputMode,
    /// The directory to work in, if not the session's.
    pub workspace: Option<String>,
    /// Who wrote it.
    pub by: String,
    /// With what.
    pub given_with: StartedWith,
    /// When.
    pub at: Timestamp,
    /// The agent that answers, if not the session's.
    pub agent: Option<String>,
    /// Who wrote it, if it was not whose run it becomes.
    pub from: Option<OutsideSender>,
}

/// An input with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputState {
    pub(crate) input: QueuedInput,
    pub(crate) fate: Fate,
}

/// What became of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Waiting,
    Taken(RunId, Taken),
    Gone,
}

pub(super) struct Inputs;

impl Projection for Inputs {
    fn name(&self) -> &'static str {
        "session_inputs"
    }
    fn version(&self) -> u32 {
        3
    }
    fn tables(&self) -> &'static [&'static str] {
        &["session_inputs"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE session_inputs (
                session_id TEXT NOT NULL, input_id TEXT NOT NULL, seq INTEGER NOT NULL, text TEXT NOT NULL, mode TEXT NOT NULL,
                workspace TEXT, written_by TEXT NOT NULL, at INTEGER NOT NULL,
                fate TEXT NOT NULL DEFAULT 'waiting', run_id TEXT, how TEXT, agent TEXT, sender TEXT, given_with TEXT NOT NULL,
                PRIMARY KEY (session_id, input_id)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX session_inputs_waiting ON session_inputs (session_id, seq) WHERE fate = 'waiting'",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::INPUT => {
                let given: InputGiven = parse(record)?;
                connection
                    .prepare_cached(
                        "INSERT INTO session_inputs (session_id, input_id, seq, text, mode, workspace, written_by, at, agent, sender, given_with)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                    )?
                    .execute(params![
                        given.session_id.to_string(),
                        given.input_id,
                        i64::try_from(record.seq).unwrap_or(i64::MAX),
                        given.text,
                        given.mode.as_str(),
                        given.workspace,
                        given.by,
                        record.at.0,
                        given.agent,
                        given.from.as_ref().map(json).transpose()?,
                        json(&given.given_with)?,
                    ])?;
            }
            kind::INPUT_TAKEN => {
                let taken: InputsTaken = parse(record)?;
                for input in &taken.input_ids {
                    connection
                        .prepare_cached(
                            "UPDATE session_inputs SET fate = 'taken', run_id = ?3, how = ?4
                             WHERE session_id = ?1 AND input_id = ?2",
                        )?
                        .execute(params![
                            taken.session_id.to_string(),
                            input,
                            taken.run_id.to_string(),
                            taken.how.as_str()
                        ])?;
                }
            }
            kind::INPUT_RETURNED => {
                let returned: InputsReturned = parse(record)?;
                for input in &returned.input_ids {
                    connection
                        .prepare_cached(
                            "UPDATE session_inputs SET fate = 'waiting', run_id = NULL, how = NULL
                             WHERE session_id = ?1 AND input_id = ?2",
                        )?
                        .execute(params![returned.session_id.to_string(), input])?;
                }
            }
            kind::INPUT_WITHDRAWN => {
                let withdrawn: InputWithdrawn = parse(record)?;
                gone(connection, withdrawn.session_id, &withdrawn.input_id)?;
            }
            kind::INPUT_FAILED => {
                let failed: InputsFailed = parse(record)?;
                for input in &failed.input_ids {
                    gone(connection, failed.session_id, input)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn gone(connection: &Connection, session: SessionId, input: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE session_inputs SET fate = 'gone' WHERE session_id = ?1 AND input_id = ?2")?
        .execute(params![session.to_string(), input])
        .map(|_| ())
}

const COLUMNS: &str =
    "session_id, input_id, text, mode, workspace, written_by, at, fate, run_id, how, agent, sender, given_with";

fn read(row: &Row<'_>) -> rusqlite::Result<InputState> {
    let taken = (typed_option::<RunId>(row, 8)?, typed_option::<Taken>(row, 9)?);
    let fate = match (row.get::<_, String>(7)?.as_str(), taken) {
        ("waiting", _) => Fate::Waiting,
        (_, (Some(run), Some(how))) => Fate::Taken(run, how),
        _ => Fate::Gone,
    };
    let input = QueuedInput {
        session_id: typed(row, 0)?,
        input_id: row.get(1)?,
        text: row.get(2)?,
        mode: typed(row, 3)?,
        workspace: row.get(4)?,
        by: row.get(5)?,
        given_with: from_json(row, 12)?.unwrap_or_default(),
        at: Timestamp(row.get(6)?),
        agent: row.get(10)?,
        from: from_json(row, 11)?,
    };
    Ok(InputState { input, fate })
}

/// One input, whatever became of it.
pub(crate) fn input(connection: &Connection, session: SessionId, id: &str) -> rusqlite::Result<Option<InputState>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM session_inputs WHERE session_id = ?1 AND input_id = ?2"))?
        .query_row(params![session.to_string(), id], read)
        .optional()
}

/// What waits in a session, in the order in which it is worked off: interruptions first.
pub(crate) fn waiting_inputs(connection: &Connection, session: SessionId) -> rusqlite::Result<Vec<QueuedInput>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM session_inputs WHERE session_id = ?1 AND fate = 'waiting'
             ORDER BY mode <> 'interrupt', seq"
        ))?
        .query_map([session.to_string()], |row| read(row).map(|state| state.input))?
        .collect()
}

/// Inputs that were put into a run, with their texts, oldest first.
pub(crate) fn steered_inputs(connection: &Connection, run: RunId) -> rusqlite::Result<Vec<(String, String)>> {
    connection
        .prepare_cached(
            "SELECT input_id, text FROM session_inputs WHERE run_id = ?1 AND fate = 'taken' AND how = 'steered' ORDER BY seq",
        )?
        .query_map([run.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// Sessions in which something waits.
pub(crate) fn sessions_with_waiting_inputs(connection: &Connection) -> rusqlite::Result<Vec<SessionId>> {
    connection
        .prepare_cached("SELECT DISTINCT session_id FROM session_inputs WHERE fate = 'waiting'")?
        .query_map([], |row| typed(row, 0))?
        .collect()
}
