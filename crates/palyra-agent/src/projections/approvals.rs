//! Approvals: what waits for a person, and what people answered.

use palyra_common::{
    ApprovalDecision, ApprovalEvidence, ApprovalId, ApprovalScope, ApprovalSubject, Risk, RunId, SessionId, Timestamp,
};
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use super::{from_json, json, parse, typed, typed_option};
use crate::machine::{Action, Input, Offer, Question};
use crate::tape::{TapeEntry, kind};

/// One approval.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRow {
    /// The approval.
    pub approval_id: ApprovalId,
    /// The run that asks.
    pub run_id: RunId,
    /// Its session.
    pub session_id: SessionId,
    /// Whose run asks.
    pub owner: String,
    /// The call it is about.
    pub call_id: String,
    /// What kind of thing is asked.
    pub subject: ApprovalSubject,
    /// How much harm it could do.
    pub risk: Risk,
    /// What is asked.
    pub question: Question,
    /// One line for a person.
    pub summary: String,
    /// Why it is asked.
    pub reason: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// The values that steer the effect and were chosen by nobody the person trusts.
    pub evidence: Vec<ApprovalEvidence>,
    /// What could be agreed to for longer than once.
    pub offer: Option<Offer>,
    /// When it was asked.
    pub requested_at: Timestamp,
    /// The answer.
    pub decision: Option<ApprovalDecision>,
    /// How far the answer reaches.
    pub scope: Option<ApprovalScope>,
    /// Who answered.
    pub by: Option<String>,
    /// Where they answered.
    pub via: Option<String>,
    /// When it was answered or taken back.
    pub closed_at: Option<Timestamp>,
}

/// Which approvals to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApprovalFilter {
    /// Of this run only.
    pub run_id: Option<RunId>,
    /// Those still open (`Some(true)`), those closed (`Some(false)`), or both.
    pub open: Option<bool>,
}

/// Where a page of approvals goes on, and how long it is.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalPage {
    /// When the last approval of the page before was asked, and which it is.
    pub after: Option<(Timestamp, ApprovalId)>,
    /// At most so many.
    pub limit: u32,
}

impl ApprovalPage {
    /// All of them.
    pub(crate) const WHOLE: Self = Self { after: None, limit: u32::MAX };
}

pub(super) struct Approvals;

impl Projection for Approvals {
    fn name(&self) -> &'static str {
        "approvals"
    }
    fn version(&self) -> u32 {
        2
    }
    fn tables(&self) -> &'static [&'static str] {
        &["approvals"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE approvals (
                approval_id TEXT PRIMARY KEY NOT NULL, run_id TEXT NOT NULL, session_id TEXT NOT NULL, call_id TEXT NOT NULL,
                subject TEXT NOT NULL, risk TEXT NOT NULL, question TEXT NOT NULL, summary TEXT NOT NULL, reason TEXT NOT NULL,
                tool TEXT NOT NULL, arguments TEXT NOT NULL, requested_at INTEGER NOT NULL,
                owner TEXT NOT NULL, evidence TEXT NOT NULL, offer TEXT, decision TEXT, scope TEXT, decided_by TEXT, decided_via TEXT, closed_at INTEGER
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX approvals_allowed ON approvals (session_id, tool) WHERE decision = 'allow';
            CREATE INDEX approvals_by_run ON approvals (run_id);
            CREATE INDEX approvals_open ON approvals (approval_id) WHERE closed_at IS NULL",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::APPROVAL_REQUESTED => request(connection, record)?,
            kind::APPROVAL_DECIDED => {
                if let TapeEntry::Input(Input::ApprovalDecided { approval_id, decision, scope, by, via, .. }) =
                    parse(record)?
                {
                    connection
                        .prepare_cached(
                            "UPDATE approvals SET decision = ?2, scope = ?3, decided_by = ?4, closed_at = ?5,
                                decided_via = ?6
                             WHERE approval_id = ?1",
                        )?
                        .execute(params![
                            approval_id.to_string(),
                            decision.as_str(),
                            scope.as_str(),
                            by,
                            record.at.0,
                            via
                        ])?;
                }
            }
            kind::APPROVAL_WITHDRAWN => {
                if let TapeEntry::Action(Action::WithdrawApproval { approval_id }) = parse(record)? {
                    connection
                        .prepare_cached("UPDATE approvals SET closed_at = ?2 WHERE approval_id = ?1")?
                        .execute(params![approval_id.to_string(), record.at.0])?;
                }
            }
            kind::RUN_STATUS => close_with_run(connection, record)?,
            _ => {}
        }
        Ok(())
    }
}

fn request(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let TapeEntry::Action(Action::RequestApproval(request)) = parse(record)? else { return Ok(()) };
    let (Some(run), Some(session)) = (record.run_id, record.session_id) else { return Ok(()) };
    connection
        .prepare_cached(
            "INSERT INTO approvals (approval_id, run_id, session_id, call_id, subject, risk, question, summary, reason, tool,
                arguments, requested_at, evidence, offer, owner)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            request.approval_id.to_string(),
            run.to_string(),
            session.to_string(),
            request.call_id,
            request.subject.as_str(),
            request.risk.as_str(),
            request.question.as_str(),
            request.summary,
            request.reasons.join("; "),
            request.tool,
            request.arguments.to_string(),
            record.at.0,
            json(&request.evidence)?,
            request.offer.as_ref().map(json).transpose()?,
            request.owner,
        ])?;
    Ok(())
}

/// A run that is over asks nothing any more, for example when its questions lapsed.
fn close_with_run(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let TapeEntry::Action(Action::Status(change)) = parse(record)? else { return Ok(()) };
    if let (true, Some(run)) = (change.phase.is_terminal(), record.run_id) {
        connection
            .prepare_cached("UPDATE approvals SET closed_at = ?2 WHERE run_id = ?1 AND closed_at IS NULL")?
            .execute(params![run.to_string(), record.at.0])?;
    }
    Ok(())
}

const COLUMNS: &str = "approval_id, run_id, session_id, call_id, subject, risk, question, summary, reason, tool, arguments, \
                       requested_at, decision, scope, decided_by, closed_at, evidence, offer, owner, decided_via";

fn read(row: &Row<'_>) -> rusqlite::Result<ApprovalRow> {
    Ok(ApprovalRow {
        approval_id: typed(row, 0)?,
        run_id: typed(row, 1)?,
        session_id: typed(row, 2)?,
        call_id: row.get(3)?,
        subject: typed(row, 4)?,
        risk: typed(row, 5)?,
        question: typed(row, 6)?,
        summary: row.get(7)?,
        reason: row.get(8)?,
        tool: row.get(9)?,
        arguments: typed(row, 10)?,
        requested_at: Timestamp(row.get(11)?),
        decision: typed_option(row, 12)?,
        scope: typed_option(row, 13)?,
        by: row.get(14)?,
        closed_at: row.get::<_, Option<i64>>(15)?.map(Timestamp),
        evidence: from_json(row, 16)?.unwrap_or_default(),
        offer: from_json(row, 17)?,
        owner: row.get(18)?,
        via: row.get(19)?,
    })
}

/// How many earlier approvals a pattern is made from.
const LOOKED_AT: u32 = 8;

/// What was offered with the calls of a tool that people allowed in a session, newest first.
pub(crate) fn approved_calls(connection: &Connection, session: SessionId, tool: &str) -> rusqlite::Result<Vec<Offer>> {
    let offers: Vec<Option<Offer>> = connection
        .prepare_cached(&format!(
            "SELECT offer FROM approvals WHERE session_id = ?1 AND tool = ?2 AND decision = 'allow'
             ORDER BY approval_id DESC LIMIT {LOOKED_AT}"
        ))?
        .query_map(params![session.to_string(), tool], |row| from_json(row, 0))?
        .collect::<Result<_, _>>()?;
    Ok(offers.into_iter().flatten().collect())
}

pub(crate) fn approval(connection: &Connection, id: ApprovalId) -> rusqlite::Result<Option<ApprovalRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM approvals WHERE approval_id = ?1"))?
        .query_row([id.to_string()], read)
        .optional()
}

/// Oldest first: the order in which a person should answer.
pub(crate) fn approvals(
    connection: &Connection,
    filter: ApprovalFilter,
    page: ApprovalPage,
) -> rusqlite::Result<Vec<ApprovalRow>> {
    let mut sql = format!("SELECT {COLUMNS} FROM approvals WHERE 1");
    match filter.open {
        Some(true) => sql.push_str(" AND closed_at IS NULL"),
        Some(false) => sql.push_str(" AND closed_at IS NOT NULL"),
        None => {}
    }
    let mut values: Vec<rusqlite::types::Value> = Vec::new();
    if let Some(run) = filter.run_id {
        sql.push_str(" AND run_id = ?");
        values.push(run.to_string().into());
    }
    if let Some((at, id)) = page.after {
        sql.push_str(" AND (requested_at, approval_id) > (?, ?)");
        values.extend([at.0.into(), id.to_string().into()]);
    }
    sql.push_str(" ORDER BY requested_at, approval_id LIMIT ?");
    values.push(i64::from(page.limit).into());
    connection.prepare_cached(&sql)?.query_map(rusqlite::params_from_iter(values), read)?.collect()
}
