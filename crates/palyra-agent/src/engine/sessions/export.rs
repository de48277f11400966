//! A whole session as one document, for people and for programs.
//!
//! Everything is taken from the tapes, so secrets that were cut out before they were recorded are not in it either.

use palyra_common::{RunMode, SessionId, Timestamp};
use palyra_journal::{JournalError, Reader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::export_run::{ExchangeExport, RunExport};
use super::history::exchange;
use super::lineage::links;
use super::{markdown, missing, read};
use crate::engine::Engine;
use crate::error::AgentError;
use crate::projections::{self, ApprovalFilter, ApprovalPage, SessionState};
use crate::session::{Compaction, ForkedFrom, SessionSettings};

/// The form of the document; grows when a reader would misunderstand it otherwise.
const FORMAT: u32 = 1;
/// Most runs and inherited exchanges of one document.
const MOST: usize = 10_000;

/// A whole session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionExport {
    /// Form of this document.
    pub format: u32,
    /// The session.
    pub session_id: SessionId,
    /// Who created it.
    pub owner: String,
    /// The owner's own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its title.
    pub title: String,
    /// When it began.
    pub created_at: Timestamp,
    /// When it was last changed or took a run.
    pub updated_at: Timestamp,
    /// When it was put away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
    /// Its version when this was made.
    pub version: u64,
    /// How its runs treat untrusted results, if they are told nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RunMode>,
    /// What its runs take where they are told nothing else.
    pub settings: SessionSettings,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// What it inherited, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherited: Vec<ExchangeExport>,
    /// The summary that later runs are told instead of the oldest exchanges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
    /// Its own runs, oldest first.
    pub runs: Vec<RunExport>,
}

impl Engine {
    /// A whole session as one document.
    ///
    /// # Errors
    /// When there is no such session or a tape cannot be read.
    pub async fn export_session(&self, session_id: SessionId) -> Result<SessionExport, AgentError> {
        read(self, move |reader| {
            let Some(state) = projections::session(reader.connection(), session_id)? else {
                return Ok(Err(missing(session_id)));
            };
            export(reader, state)
        })
        .await
    }
}

impl SessionExport {
    /// The document for people. Whatever was said stands in blocks that it cannot leave.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }
}

fn export(reader: &Reader, state: SessionState) -> Result<Result<SessionExport, AgentError>, JournalError> {
    let db = reader.connection();
    let mut own = projections::past_runs(db, state.row.session_id, i64::MAX, MOST)?;
    own.reverse();
    let mut runs = Vec::new();
    for past in own {
        let Some(row) = projections::run(db, past.run_id)? else { continue };
        let approvals =
            projections::approvals(db, ApprovalFilter { run_id: Some(past.run_id), open: None }, ApprovalPage::WHOLE)?;
        let records = reader.run_tape(past.run_id, 1, usize::MAX)?;
        match RunExport::of(row, past.prompt, approvals, &records) {
            Ok(run) => runs.push(run),
            Err(error) => return Ok(Err(error)),
        }
    }
    let mut inherited: Vec<ExchangeExport> = links(db, &state, MOST)?
        .into_iter()
        .skip(runs.len())
        .filter_map(exchange)
        .map(|exchange| ExchangeExport { run_id: exchange.run_id, prompt: exchange.prompt, answer: exchange.answer })
        .collect();
    inherited.reverse();
    let row = state.row;
    Ok(Ok(SessionExport {
        format: FORMAT,
        session_id: row.session_id,
        owner: row.owner,
        key: row.key,
        title: row.title,
        created_at: row.created_at,
        updated_at: row.updated_at,
        archived_at: row.archived_at,
        version: row.version,
        mode: row.mode,
        settings: row.settings,
        forked_from: row.forked_from,
        inherited,
        compaction: state.compaction,
        runs,
    }))
}
