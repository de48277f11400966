//! Runs as later runs know them: what was asked and answered, in the order of acceptance, out of the table of runs.

use palyra_common::{Label, RunId, RunLifecyclePhase, SessionId, TerminationReason};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::runs::answer_hash;
use super::{typed, typed_option};

/// A run as the next run of its session knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Past {
    pub(crate) run_id: RunId,
    pub(crate) prompt: String,
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
            "SELECT run_id, prompt, answer, answer_label, reason, phase FROM runs
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
