//! Patterns: what people agreed to for longer than once, and what they took back.

use palyra_common::{ApprovalDecision, ApprovalId, ApprovalScope, SessionId, Timestamp};
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use palyra_policy::{Pattern, PatternGrant, PatternScope};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};

use super::{parse, typed};
use crate::machine::{Action, Input};
use crate::tape::{TapeEntry, kind};

/// One pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternRow {
    /// The approval it came from; patterns have no other name.
    pub approval_id: ApprovalId,
    /// The session it was agreed to in.
    pub session_id: SessionId,
    /// Whose run asked.
    pub owner: String,
    /// What it covers.
    pub pattern: Pattern,
    /// How far it reaches.
    pub scope: ApprovalScope,
    /// When it ends, if it does.
    pub until: Option<Timestamp>,
    /// Who agreed.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// When it was taken back, if it was.
    pub revoked_at: Option<Timestamp>,
}

impl PatternRow {
    /// The grant that policies are made from. A session's pattern holds in that session, a timeboxed one wherever its owner works.
    #[must_use]
    pub fn grant(&self) -> PatternGrant {
        let scope = match self.scope {
            ApprovalScope::Timeboxed => PatternScope::User(self.owner.clone()),
            ApprovalScope::Once | ApprovalScope::Session => PatternScope::Session(self.session_id.to_string()),
        };
        PatternGrant {
            id: self.approval_id.to_string().to_ascii_lowercase(),
            scope,
            pattern: self.pattern.clone(),
            expires_at: self.until,
            approval: self.approval_id,
        }
    }
}

/// A pattern was taken back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Revoked {
    pub(crate) approval_id: ApprovalId,
    pub(crate) by: String,
}

pub(super) struct Patterns;

impl Projection for Patterns {
    fn name(&self) -> &'static str {
        "patterns"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["offered_patterns", "patterns"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE offered_patterns (
                approval_id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, owner TEXT NOT NULL, pattern TEXT NOT NULL
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE patterns (
                approval_id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, owner TEXT NOT NULL, pattern TEXT NOT NULL,
                scope TEXT NOT NULL, until INTEGER, agreed_by TEXT NOT NULL, agreed_at INTEGER NOT NULL, revoked_at INTEGER
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match record.kind.as_ref() {
            kind::APPROVAL_REQUESTED => offer(connection, record),
            kind::APPROVAL_DECIDED => agree(connection, record),
            kind::APPROVAL_REVOKED => {
                let revoked: Revoked = serde_json::from_slice(&record.payload)
                    .map_err(|error| ProjectionError::Refused(error.to_string()))?;
                connection
                    .prepare_cached(
                        "UPDATE patterns SET revoked_at = ?2 WHERE approval_id = ?1 AND revoked_at IS NULL",
                    )?
                    .execute(params![revoked.approval_id.to_string(), record.at.0])?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Only what was offered can be agreed to, so the offer is kept until it is answered.
fn offer(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let TapeEntry::Action(Action::RequestApproval(request)) = parse(record)? else { return Ok(()) };
    let (Some(offer), Some(session)) = (request.offer, record.session_id) else { return Ok(()) };
    let pattern = serde_json::to_string(&offer.pattern).map_err(|error| ProjectionError::Refused(error.to_string()))?;
    connection.prepare_cached("INSERT INTO offered_patterns VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        request.approval_id.to_string(),
        session.to_string(),
        request.owner,
        pattern
    ])?;
    Ok(())
}

fn agree(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let TapeEntry::Input(Input::ApprovalDecided { approval_id, decision, scope, until, by, .. }) = parse(record)?
    else {
        return Ok(());
    };
    let id = approval_id.to_string();
    if decision == ApprovalDecision::Allow && scope != ApprovalScope::Once {
        connection
            .prepare_cached(
                "INSERT INTO patterns SELECT approval_id, session_id, owner, pattern, ?2, ?3, ?4, ?5, NULL
                 FROM offered_patterns WHERE approval_id = ?1",
            )?
            .execute(params![id, scope.as_str(), until.map(|until| until.0), by, record.at.0])?;
    }
    connection.prepare_cached("DELETE FROM offered_patterns WHERE approval_id = ?1")?.execute([id])?;
    Ok(())
}

const COLUMNS: &str = "approval_id, session_id, owner, pattern, scope, until, agreed_by, agreed_at, revoked_at";

fn read(row: &Row<'_>) -> rusqlite::Result<PatternRow> {
    let pattern: String = row.get(3)?;
    let pattern = serde_json::from_str(&pattern)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error)))?;
    Ok(PatternRow {
        approval_id: typed(row, 0)?,
        session_id: typed(row, 1)?,
        owner: row.get(2)?,
        pattern,
        scope: typed(row, 4)?,
        until: row.get::<_, Option<i64>>(5)?.map(Timestamp),
        by: row.get(6)?,
        at: Timestamp(row.get(7)?),
        revoked_at: row.get::<_, Option<i64>>(8)?.map(Timestamp),
    })
}

pub(crate) fn pattern(connection: &Connection, id: ApprovalId) -> rusqlite::Result<Option<PatternRow>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM patterns WHERE approval_id = ?1"))?
        .query_row([id.to_string()], read)
        .optional()
}

/// All patterns, newest first; those that count at `now`, or every one.
pub(crate) fn patterns(connection: &Connection, counting_at: Option<Timestamp>) -> rusqlite::Result<Vec<PatternRow>> {
    let now = counting_at.map_or(i64::MIN, |now| now.0);
    let filter = if counting_at.is_some() {
        "WHERE revoked_at IS NULL AND (until IS NULL OR until > ?1)"
    } else {
        "WHERE ?1 < 1"
    };
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM patterns {filter} ORDER BY approval_id DESC LIMIT 1000"))?
        .query_map([now], read)?
        .collect()
}
