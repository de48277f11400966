//! Runs: where each stands, for lists, for recovery and for the next run of a session.

use palyra_common::{Digest, Label, RunId, RunLifecyclePhase, SessionId, StatusDetail, TerminationReason, Timestamp};
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{json, parse, typed, typed_option};
use crate::machine::{Action, Input, StatusChange};
use crate::tape::{Note, TapeEntry, UNRECOVERABLE, kind};

/// Characters of a prompt that lists show.
const PROMPT_CHARS: usize = 200;

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// The run.
    pub run_id: RunId,
    /// Its session.
    pub session_id: SessionId,
    /// Whose run it is.
    pub owner: String,
    /// Where it stands.
    pub phase: RunLifecyclePhase,
    /// Why it ended.
    pub reason: Option<TerminationReason>,
    /// What exactly ended it.
    pub detail: Option<StatusDetail>,
    /// The beginning of its task.
    pub prompt: String,
    /// The directory it works in.
    pub workspace: String,
    /// The model that plans.
    pub model: String,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Model turns finished.
    pub turns: u32,
    /// Tool calls finished.
    pub tool_calls: u32,
    /// Its answer.
    pub answer: Option<String>,
    /// Label of the answer: what the model had read when it wrote it.
    pub answer_label: Option<Label>,
    /// Whether its changes were taken back.
    pub undone: bool,
}

/// Which runs to list.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Of this session only.
    pub session_id: Option<SessionId>,
    /// Of this owner only.
    pub owner: Option<String>,
    /// In this phase only.
    pub phase: Option<RunLifecyclePhase>,
    /// Older than this one.
    pub before: Option<RunId>,
    /// At most so many.
    pub limit: u32,
}

pub(super) struct Runs;

impl Projection for Runs {
    fn name(&self) -> &'static str {
        "runs"
    }
    fn version(&self) -> u32 {
        5
    }
    fn tables(&self) -> &'static [&'static str] {
        &["runs", "idempotency"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE runs (
                run_id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, owner TEXT NOT NULL, accepted INTEGER NOT NULL,
                phase TEXT NOT NULL, reason TEXT,
                detail_code TEXT, detail_message TEXT, prompt TEXT NOT NULL, workspace TEXT NOT NULL, model TEXT NOT NULL,
                created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER,
                turns INTEGER NOT NULL DEFAULT 0, tool_calls INTEGER NOT NULL DEFAULT 0, answer TEXT, answer_label TEXT,
                answer_hash INTEGER, undone INTEGER NOT NULL DEFAULT 0, prompt_label TEXT
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX runs_by_session ON runs (session_id, accepted);
            CREATE INDEX runs_by_owner ON runs (owner, run_id);
            CREATE INDEX runs_by_answer ON runs (answer_hash) WHERE answer_hash IS NOT NULL;
            CREATE INDEX runs_at_work ON runs (session_id, accepted)
                WHERE phase IN ('queued', 'running', 'waiting_for_approval', 'paused');
            CREATE TABLE idempotency (
                owner TEXT NOT NULL, key TEXT NOT NULL, run_id TEXT NOT NULL, request TEXT NOT NULL,
                PRIMARY KEY (owner, key)
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        let Some(run_id) = record.run_id.map(|id| id.to_string()) else { return Ok(()) };
        match record.kind.as_ref() {
            kind::RUN_ACCEPTED => accept(connection, &run_id, record)?,
            kind::RUN_STARTED => {
                connection
                    .prepare_cached("UPDATE runs SET phase = 'running', started_at = ?2 WHERE run_id = ?1")?
                    .execute(params![run_id, record.at.0])?;
            }
            kind::RUN_RESUME => {
                if let TapeEntry::Input(Input::Resume { model: Some(model), .. }) = parse(record)? {
                    connection
                        .prepare_cached("UPDATE runs SET model = ?2 WHERE run_id = ?1")?
                        .execute(params![run_id, model.shown()])?;
                }
            }
            kind::MODEL_TURN_FINISHED => {
                connection.prepare_cached("UPDATE runs SET turns = turns + 1 WHERE run_id = ?1")?.execute([run_id])?;
            }
            kind::TOOL_FINISHED => {
                connection
                    .prepare_cached("UPDATE runs SET tool_calls = tool_calls + 1 WHERE run_id = ?1")?
                    .execute([run_id])?;
            }
            kind::RUN_STATUS => {
                if let TapeEntry::Action(Action::Status(change)) = parse(record)? {
                    set_status(connection, &run_id, record.at, &change)?;
                }
            }
            kind::RUN_UNRECOVERABLE => {
                if let TapeEntry::Note(Note::Unrecoverable { message }) = parse(record)? {
                    let detail = Some(StatusDetail { code: UNRECOVERABLE.to_owned(), message });
                    let change = StatusChange {
                        phase: RunLifecyclePhase::Failed,
                        reason: None,
                        detail,
                        answer: None,
                        label: None,
                    };
                    set_status(connection, &run_id, record.at, &change)?;
                }
            }
            kind::RUN_UNDONE => {
                connection.prepare_cached("UPDATE runs SET undone = 1 WHERE run_id = ?1")?.execute([run_id])?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn accept(connection: &Connection, run_id: &str, record: &StoredRecord) -> Result<(), ProjectionError> {
    let TapeEntry::Input(Input::Accepted(spec)) = parse(record)? else { return Ok(()) };
    connection
        .prepare_cached(
            "INSERT INTO runs (run_id, session_id, phase, prompt, workspace, model, created_at, owner, accepted, prompt_label)
             VALUES (?1, ?2, 'queued', ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            run_id,
            spec.session_id.to_string(),
            spec.prompt,
            spec.workspace,
            spec.model.shown(),
            record.at.0,
            spec.owner,
            i64::try_from(record.seq).unwrap_or(i64::MAX),
            spec.from.as_ref().map(|from| json(&from.label())).transpose()?,
        ])?;
    if let Some(idempotency) = &spec.idempotency {
        connection.prepare_cached("INSERT INTO idempotency VALUES (?1, ?2, ?3, ?4)")?.execute(params![
            spec.owner,
            idempotency.key,
            run_id,
            idempotency.request.to_string()
        ])?;
    }
    Ok(())
}

fn set_status(
    connection: &Connection,
    run_id: &str,
    at: Timestamp,
    change: &StatusChange,
) -> Result<(), ProjectionError> {
    connection
        .prepare_cached(
            "UPDATE runs SET phase = ?2, reason = ?3, detail_code = ?4, detail_message = ?5, answer = ?6, ended_at = ?7,
                answer_label = ?8, answer_hash = ?9
             WHERE run_id = ?1",
        )?
        .execute(params![
            run_id,
            change.phase.as_str(),
            change.reason.map(TerminationReason::as_str),
            change.detail.as_ref().map(|detail| &detail.code),
            change.detail.as_ref().map(|detail| &detail.message),
            change.answer,
            change.phase.is_terminal().then_some(at.0),
            change.label.as_ref().map(json).transpose()?,
            change.answer.as_deref().map(answer_hash),
        ])?;
    Ok(())
}

/// What answers are found by; the text itself decides.
pub(super) fn answer_hash(answer: &str) -> i64 {
    Digest::of(answer.as_bytes()).0.iter().take(8).fold(0, |bits, byte| bits << 8 | i64::from(*byte))
}

fn shorten(prompt: &str) -> String {
    match prompt.char_indices().nth(PROMPT_CHARS) {
        Some((at, _)) => format!("{}…", prompt.get(..at).unwrap_or_default()),
        None => prompt.to_owned(),
    }
}

// Lists need the beginning of a prompt; one character more tells whether there is more.
const COLUMNS: &str = "run_id, session_id, phase, reason, detail_code, detail_message, substr(prompt, 1, 201), workspace, model, \
                       created_at, started_at, ended_at, turns, tool_calls, answer, undone, answer_label, owner";

fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let detail = match (row.get::<_, Option<String>>(4)?, row.get::<_, Option<String>>(5)?) {
        (Some(code), Some(message)) => Some(StatusDetail { code, message }),
        _ => None,
    };
    Ok(RunRow {
        run_id: typed(row, 0)?,
        session_id: typed(row, 1)?,
        phase: typed(row, 2)?,
        reason: typed_option(row, 3)?,
        detail,
        prompt: shorten(&row.get::<_, String>(6)?),
        workspace: row.get(7)?,
        model: row.get(8)?,
        created_at: Timestamp(row.get(9)?),
        started_at: row.get::<_, Option<i64>>(10)?.map(Timestamp),
        ended_at: row.get::<_, Option<i64>>(11)?.map(Timestamp),
        turns: row.get(12)?,
        tool_calls: row.get(13)?,
        answer: row.get(14)?,
        undone: row.get(15)?,
        // A label that does not read is one that nobody knows.
        answer_label: row.get::<_, Option<String>>(16)?.and_then(|text| serde_json::from_str(&text).ok()),
        owner: row.get(17)?,
    })
}

pub(crate) fn run(connection: &Connection, id: RunId) -> rusqlite::Result<Option<RunRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM runs WHERE run_id = ?1"))?
        .query_row([id.to_string()], read)
        .optional()
}

/// The run that an owner's key was used for, and the digest of the request it came with.
pub(crate) fn idempotent_run(
    connection: &Connection,
    owner: &str,
    key: &str,
) -> rusqlite::Result<Option<(RunId, Digest)>> {
    connection
        .prepare_cached("SELECT run_id, request FROM idempotency WHERE owner = ?1 AND key = ?2")?
        .query_row([owner, key], |row| Ok((typed(row, 0)?, typed(row, 1)?)))
        .optional()
}

/// Newest first: within a session in the order of acceptance, else by id.
pub(crate) fn runs(connection: &Connection, filter: &RunFilter) -> rusqlite::Result<Vec<RunRow>> {
    let (sql, values) = list(filter);
    connection.prepare_cached(&sql)?.query_map(rusqlite::params_from_iter(values), read)?.collect()
}

fn list(filter: &RunFilter) -> (String, Vec<String>) {
    let mut values = Vec::new();
    let mut conditions = vec!["1".to_owned()];
    let mut require = |condition: &str, value: String| {
        values.push(value);
        conditions.push(condition.replace('?', &format!("?{}", values.len())));
    };
    let order = if filter.session_id.is_some() { "accepted" } else { "run_id" };
    if let Some(session) = filter.session_id {
        require("session_id = ?", session.to_string());
    }
    if let Some(before) = filter.before {
        let condition = match order {
            "accepted" => "accepted < (SELECT accepted FROM runs WHERE run_id = ?)",
            _ => "run_id < ?",
        };
        require(condition, before.to_string());
    }
    if let Some(owner) = &filter.owner {
        require("owner = ?", owner.clone());
    }
    if let Some(phase) = filter.phase {
        require("phase = ?", phase.as_str().to_owned());
    }
    let conditions = conditions.join(" AND ");
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE {conditions} ORDER BY {order} DESC LIMIT {}", filter.limit);
    (sql, values)
}

/// Oldest first: the order in which they are taken up again after a restart.
pub(crate) fn unfinished_runs(connection: &Connection) -> rusqlite::Result<Vec<(RunId, SessionId)>> {
    connection
        .prepare_cached(
            "SELECT run_id, session_id FROM runs WHERE phase IN ('queued', 'running', 'waiting_for_approval', 'paused')
             ORDER BY accepted",
        )?
        .query_map([], |row| Ok((typed(row, 0)?, typed(row, 1)?)))?
        .collect()
}

/// The newest run of a session that is not over.
pub(crate) fn run_at_work(connection: &Connection, session: SessionId) -> rusqlite::Result<Option<RunRow>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM runs WHERE session_id = ?1
                AND phase IN ('queued', 'running', 'waiting_for_approval', 'paused')
             ORDER BY accepted DESC LIMIT 1"
        ))?
        .query_row([session.to_string()], read)
        .optional()
}

/// The directory that the newest run of a session works in.
pub(crate) fn newest_workspace(connection: &Connection, session: SessionId) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT workspace FROM runs WHERE session_id = ?1 ORDER BY accepted DESC LIMIT 1")?
        .query_row([session.to_string()], |row| row.get(0))
        .optional()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the database would find the rows.
    fn plan(filter: &RunFilter) -> String {
        let connection = Connection::open_in_memory().unwrap();
        Runs.create(&connection).unwrap();
        let (sql, values) = list(filter);
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let rows = statement.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        rows.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    #[test]
    fn a_page_is_read_in_the_order_of_an_index() {
        let all = RunFilter { before: Some(RunId::from_u128(9)), limit: 10, ..RunFilter::default() };
        let session = RunFilter { session_id: Some(SessionId::from_u128(1)), ..all.clone() };
        let owner = RunFilter { owner: Some("ada".into()), ..all.clone() };
        let both = RunFilter { owner: Some("ada".into()), ..session.clone() };
        for (filter, index) in
            [(all, "PRIMARY KEY"), (session, "runs_by_session"), (owner, "runs_by_owner"), (both, "runs_by_session")]
        {
            let plan = plan(&filter);
            assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
