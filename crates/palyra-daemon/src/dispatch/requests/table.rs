//! Questions of clients on the journal, and the table that is derived from it.

use palyra_agent::{CLOCK_STEPPED, ClockStepped};
use palyra_client::api::{ApprovalAnswer, ApprovalView};
use palyra_common::{ApprovalDecision, ApprovalId, ApprovalScope, ApprovalSubject, Risk, SessionId, Timestamp};
use palyra_journal::rusqlite::{Connection, OptionalExtension as _, params};
use palyra_journal::{Projection, ProjectionError, StoredRecord, rusqlite};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dispatch::records::read;

/// A client asked.
pub(super) const ASKED: &str = "client_approval.requested";
/// A person answered.
pub(super) const ANSWERED: &str = "client_approval.decided";

/// How long ago a question may have been asked on the new clock when a step of the clock is put on record.
const JUST_NOW_MS: i64 = 2_000;

/// A question in a client's own words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::dispatch) struct Asked {
    pub(super) approval_id: ApprovalId,
    /// Whose program asks, and who answers.
    pub(in crate::dispatch) owner: String,
    /// By which way in, for people.
    pub(super) via: String,
    /// The credential that asks, if it is one that a program holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) credential: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<SessionId>,
    pub(super) subject: ApprovalSubject,
    pub(super) risk: Risk,
    pub(super) summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<Value>,
    pub(super) at: Timestamp,
    /// When the question lapses, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Timestamp>,
}

/// A person's answer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) approval_id: ApprovalId,
    pub(super) decision: ApprovalDecision,
    pub(super) by: String,
    pub(super) via: String,
    pub(super) at: Timestamp,
}

/// A question with its answer, if there is one.
#[derive(Debug, Clone)]
pub(in crate::dispatch) struct Question {
    pub(in crate::dispatch) asked: Asked,
    pub(super) answered: Option<Answered>,
}

impl Question {
    /// What came of it so far. A question that lapsed is answered by that: no record says so, because the question itself does.
    pub(super) fn answer(&self, now: Timestamp) -> Option<ApprovalAnswer> {
        if let Some(answered) = &self.answered {
            return Some(ApprovalAnswer {
                decision: answered.decision,
                scope: ApprovalScope::Once,
                by: answered.by.clone(),
                via: Some(answered.via.clone()),
                at: answered.at,
            });
        }
        let lapsed = self.asked.expires_at.filter(|end| *end <= now)?;
        Some(ApprovalAnswer {
            decision: ApprovalDecision::Timeout,
            scope: ApprovalScope::Once,
            by: "palyra".to_owned(),
            via: None,
            at: lapsed,
        })
    }

    /// The question as it is told.
    pub(in crate::dispatch) fn view(self, now: Timestamp) -> ApprovalView {
        let answer = self.answer(now);
        let asked = self.asked;
        ApprovalView {
            approval_id: asked.approval_id,
            run_id: None,
            session_id: asked.session_id,
            asked_by: Some(format!("{} ({})", asked.owner, asked.via)),
            call_id: None,
            subject: asked.subject,
            risk: asked.risk,
            summary: asked.summary,
            reason: asked.reason,
            tool: None,
            arguments: asked.details,
            evidence: Vec::new(),
            offer: None,
            requested_at: asked.at,
            expires_at: asked.expires_at,
            answer,
            withdrawn_at: None,
        }
    }
}

/// The table.
pub(in crate::dispatch) struct Requests;

impl Projection for Requests {
    fn name(&self) -> &'static str {
        "client_approvals"
    }
    fn version(&self) -> u32 {
        2
    }
    fn tables(&self) -> &'static [&'static str] {
        &["client_approvals"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE client_approvals (
                approval_id TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL, asked TEXT NOT NULL, answered TEXT
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX client_approvals_open ON client_approvals (owner) WHERE answered IS NULL",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        let refused = |error: serde_json::Error| ProjectionError::Refused(error.to_string());
        match record.kind.as_ref() {
            ASKED => {
                let asked: Asked = read(record)?;
                let text = serde_json::to_string(&asked).map_err(refused)?;
                connection
                    .prepare_cached("INSERT OR REPLACE INTO client_approvals VALUES (?1, ?2, ?3, NULL)")?
                    .execute(params![asked.approval_id.to_string(), asked.owner, text])?;
            }
            ANSWERED => {
                let answered: Answered = read(record)?;
                let text = serde_json::to_string(&answered).map_err(refused)?;
                connection
                    .prepare_cached("UPDATE client_approvals SET answered = ?2 WHERE approval_id = ?1")?
                    .execute(params![answered.approval_id.to_string(), text])?;
            }
            CLOCK_STEPPED => shift(connection, record)?,
            _ => {}
        }
        Ok(())
    }
}

/// Moves the ends of open questions when the clock says another time than has passed, so that none lapses by it. A question that was asked a moment ago was asked on the clock as it is now.
fn shift(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let refused = |error: serde_json::Error| ProjectionError::Refused(error.to_string());
    let ClockStepped { by_ms, .. } = read(record)?;
    let just_now = record.at.shifted(-JUST_NOW_MS)..=record.at;
    for mut question in questions(connection, None, Which::Unanswered)? {
        let Some(end) = question.asked.expires_at.filter(|_| !just_now.contains(&question.asked.at)) else { continue };
        question.asked.expires_at = Some(end.shifted(by_ms));
        let text = serde_json::to_string(&question.asked).map_err(refused)?;
        connection
            .prepare_cached("UPDATE client_approvals SET asked = ?2 WHERE approval_id = ?1")?
            .execute(params![question.asked.approval_id.to_string(), text])?;
    }
    Ok(())
}

/// One question.
pub(super) fn question(connection: &Connection, id: ApprovalId) -> rusqlite::Result<Option<Question>> {
    connection
        .prepare_cached("SELECT asked, answered FROM client_approvals WHERE approval_id = ?1")?
        .query_row(params![id.to_string()], from_row)
        .optional()
}

/// Which questions to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that nobody has answered; they may have lapsed.
    Unanswered,
    /// All of them.
    All,
}

/// Questions of one owner or of all, oldest first.
pub(super) fn questions(connection: &Connection, owner: Option<&str>, which: Which) -> rusqlite::Result<Vec<Question>> {
    let text = match which {
        Which::Unanswered => {
            "SELECT asked, answered FROM client_approvals WHERE answered IS NULL AND (?1 IS NULL OR owner = ?1) ORDER BY approval_id"
        }
        Which::All => {
            "SELECT asked, answered FROM client_approvals WHERE (?1 IS NULL OR owner = ?1) ORDER BY approval_id"
        }
    };
    connection.prepare_cached(text)?.query_map(params![owner], from_row)?.collect()
}

fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Question> {
    let wrong = |column, error: serde_json::Error| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
    };
    let asked: String = row.get(0)?;
    let answered: Option<String> = row.get(1)?;
    Ok(Question {
        asked: serde_json::from_str(&asked).map_err(|error| wrong(0, error))?,
        answered: match answered {
            Some(text) => Some(serde_json::from_str(&text).map_err(|error| wrong(1, error))?),
            None => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use palyra_common::Digest;
    use serde_json::json;

    use super::*;

    const HOUR: i64 = 60 * 60 * 1000;

    fn record(kind: &'static str, at: i64, payload: &impl Serialize) -> StoredRecord {
        StoredRecord {
            seq: 1,
            kind: Cow::Borrowed(kind),
            at: Timestamp(at),
            session_id: None,
            run_id: None,
            run_seq: None,
            payload: serde_json::to_vec(payload).unwrap(),
            hash: Digest::of(b""),
            prev_hash: Digest::of(b""),
        }
    }

    #[test]
    fn a_step_of_the_clock_lets_no_question_lapse_and_shortens_none_that_is_new() {
        let asked_at = 100 * HOUR;
        for by_ms in [HOUR, 1000 * HOUR, -HOUR] {
            let connection = Connection::open_in_memory().unwrap();
            Requests.create(&connection).unwrap();
            let ask = |n: u128, at: i64| {
                let asked = json!({
                    "approval_id": ApprovalId::from_u128(n), "owner": "local", "via": "unix", "subject": "tool", "risk": "medium",
                    "summary": "may I?", "at": at, "expires_at": at + HOUR / 2,
                });
                Requests.apply(&connection, &record(ASKED, at, &asked)).unwrap();
            };
            ask(1, asked_at);
            let now = asked_at + 60_000 + by_ms;
            ask(2, now - 500);
            let step = json!({ "by_ms": by_ms, "gap": "clock_set" });
            Requests.apply(&connection, &record(CLOCK_STEPPED, now, &step)).unwrap();
            let ends =
                [1, 2].map(|n| question(&connection, ApprovalId::from_u128(n)).unwrap().unwrap().asked.expires_at);
            let expected = [asked_at + HOUR / 2 + by_ms, now - 500 + HOUR / 2];
            assert_eq!(ends, expected.map(|end| Some(Timestamp(end))), "{by_ms}");
        }
    }
}
