//! Runs as later runs know them: what was asked and answered, in the order of acceptance, out of the table of runs.

use palyra_common::{Label, RunId, RunLifecyclePhase, SessionId, TerminationReason};
use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use super::runs::answer_hash;
use super::{from_json, typed, typed_option};

/// A run as the next run of its session knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Past {
    pub(crate) run_id: RunId,
    pub(crate) prompt: String,
    /// Absent if the person asked.
    pub(crate) prompt_label: Option<Label>,
    pub(crate) answer: Option<String>,
    pub(crate) label: Option<Label>,
    pub(crate) reason: Option<TerminationReason>,
    pub(crate) phase: RunLifecyclePhase,
}

/// Runs of a session accepted up to a place in the log, newest first, with their prompts whole.
pub(crate) fn past_runs(
    connection: &Connection,
    session: SessionId,
    through: i64,
    limit: usize,
) -> rusqlite::Result<Vec<Past>> {
    connection
        .prepare_cached(
            "SELECT run_id, prompt, answer, answer_label, reason, phase, prompt_label FROM runs
             WHERE session_id = ?1 AND accepted <= ?2 ORDER BY accepted DESC LIMIT ?3",
        )?
        .query_map(params![session.to_string(), through, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            Ok(Past {
                run_id: typed(row, 0)?,
                prompt: row.get(1)?,
                answer: row.get(2)?,
                label: row.get::<_, Option<String>>(3)?.and_then(|text| serde_json::from_str(&text).ok()),
                reason: typed_option(row, 4)?,
                phase: typed(row, 5)?,
                prompt_label: from_json(row, 6)?,
            })
        })?
        .collect()
}

/// How many runs of a session were accepted up to a place in the log.
pub(crate) fn count_runs_through(connection: &Connection, session: SessionId, through: i64) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM runs WHERE session_id = ?1 AND accepted <= ?2")?
        .query_row(params![session.to_string(), through], |row| row.get::<_, i64>(0))
        .map(|count| u64::try_from(count).unwrap_or(0))
}

/// The session of a run and the place in the log where it was accepted.
pub(crate) fn run_place(connection: &Connection, id: RunId) -> rusqlite::Result<Option<(SessionId, i64)>> {
    connection
        .prepare_cached("SELECT session_id, accepted FROM runs WHERE run_id = ?1")?
        .query_row([id.to_string()], |row| Ok((typed(row, 0)?, row.get(1)?)))
        .optional()
}

/// The labels under which exactly this answer was given to an owner before. `None` stands for a label that does not read.
pub(crate) fn answer_labels(
    connection: &Connection,
    owner: &str,
    answer: &str,
) -> rusqlite::Result<Vec<Option<Label>>> {
    connection
        .prepare_cached("SELECT DISTINCT answer_label FROM runs WHERE answer_hash = ?1 AND owner = ?2 AND answer = ?3")?
        .query_map(params![answer_hash(answer), owner, answer], |row| {
            Ok(row.get::<_, Option<String>>(0)?.and_then(|text| serde_json::from_str(&text).ok()))
        })?
        .collect()
}

palyra_common::runtime_contract_enum! {
    /// Who said something.
    pub enum Said("said") {
        /// A person, in a task.
        Asked = "asked",
        /// A run, in its answer.
        Answered = "answered",
    }
}

/// Something that was asked or answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SaidRow {
    pub(crate) run_id: RunId,
    pub(crate) session_id: SessionId,
    pub(crate) said: Said,
    pub(crate) text: String,
    /// Label of an answer, where it is known, and of a task that the person did not write.
    pub(crate) label: Option<Label>,
}

/// Everything that was asked and answered in the newest runs of an owner, in one session or in all, newest first.
pub(crate) fn each_said(
    connection: &Connection,
    owner: &str,
    session: Option<SessionId>,
    runs: usize,
    mut look_at: impl FnMut(SaidRow),
) -> rusqlite::Result<()> {
    let (condition, order) = match session {
        Some(_) => ("owner = ?1 AND session_id = ?3", "accepted"),
        None => ("owner = ?1", "run_id"),
    };
    let sql = format!(
        "SELECT run_id, session_id, prompt, answer, answer_label, prompt_label FROM runs WHERE {condition} ORDER BY {order} DESC LIMIT ?2"
    );
    let (limit, session) = (i64::try_from(runs).unwrap_or(i64::MAX), session.map(|session| session.to_string()));
    let mut values: Vec<&dyn ToSql> = vec![&owner, &limit];
    values.extend(session.iter().map(|session| session as &dyn ToSql));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(values.as_slice())?;
    while let Some(row) = rows.next()? {
        let (run_id, session_id) = (typed(row, 0)?, typed(row, 1)?);
        if let Some(answer) = row.get::<_, Option<String>>(3)? {
            let label = row.get::<_, Option<String>>(4)?.and_then(|text| serde_json::from_str(&text).ok());
            look_at(SaidRow { run_id, session_id, said: Said::Answered, text: answer, label });
        }
        look_at(SaidRow { run_id, session_id, said: Said::Asked, text: row.get(2)?, label: from_json(row, 5)? });
    }
    Ok(())
}
