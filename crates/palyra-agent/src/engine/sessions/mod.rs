//! Sessions: conversations that runs belong to.
//!
//! `create` begins and finds them, `change` renames, archives and sets them, `fork` branches off, `lineage` and `history` say what the next run knows,
//! `compact` and `compact_by_model` shorten that and `revert` takes it back, `queue` takes what people write, `export`, `markdown` and `explain` tell a session's story.
//!
//! INVARIANT: every record about an existing session, and every acceptance of a run in it, is committed under the session's lock
//! (`engine/locks.rs`), so that what was checked holds when it is on the journal.

mod change;
mod compact;
mod compact_by_model;
mod create;
mod explain;
mod export;
mod export_run;
mod fork;
mod history;
mod lineage;
mod markdown;
mod queue;
mod revert;
mod work_off;

use palyra_common::SessionId;
use palyra_journal::{JournalError, NewRecord};
use serde::Serialize;

pub use compact::{CompactionPlan, ExchangeOutline};
pub use create::{NewSession, Resolved};
pub use explain::{SessionAccount, SessionEvent, SessionEventKind};
pub use export::SessionExport;
pub use export_run::{ApprovalExport, CallExport, CallOutcomeExport, ExchangeExport, RunExport};
pub use queue::{InputWhereabouts, SessionInput, Submitted};
pub use revert::CompactionReverted;

pub(super) use change::check_version;
pub(super) use history::{Known, known, unknown_label};

use super::Engine;
use crate::error::AgentError;
use crate::projections::{self, SessionFilter, SessionRow, SessionState};

/// Most characters of a title.
const MAX_TITLE: usize = 200;
/// Most characters of a key or an input's id; both are indexed and shown in lists.
const MAX_KEY: usize = 200;

impl Engine {
    /// One session.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn session(&self, session_id: SessionId) -> Result<SessionRow, AgentError> {
        self.session_state(session_id).await.map(|state| state.row)
    }

    /// Sessions, most recently active first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Vec<SessionRow>, AgentError> {
        self.query(move |reader| projections::sessions(reader.connection(), &filter)).await
    }

    async fn session_state(&self, session_id: SessionId) -> Result<SessionState, AgentError> {
        self.query(move |reader| projections::session(reader.connection(), session_id))
            .await?
            .ok_or_else(|| AgentError::SessionNotFound(session_id.to_string()))
    }

    /// A record about a session, now.
    pub(super) fn session_record(
        &self,
        kind: &'static str,
        session_id: SessionId,
        payload: &impl Serialize,
    ) -> Result<NewRecord, AgentError> {
        let payload = serde_json::to_vec(payload).map_err(|error| AgentError::Internal(error.to_string()))?;
        Ok(NewRecord::new(kind, self.shared.options.clock.now(), payload).in_session(session_id))
    }
}

/// A text that becomes a name: not empty, not long, one line.
fn check_name(field: &'static str, text: &str, most: usize) -> Result<(), AgentError> {
    let fits = !text.trim().is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(AgentError::SessionFieldInvalid { field, most }) }
}

/// A session that is not there while the journal is read.
fn missing(id: SessionId) -> AgentError {
    AgentError::SessionNotFound(id.to_string())
}

/// Reads within one state of the journal and keeps errors of both kinds.
async fn read<T: Send + 'static>(
    engine: &Engine,
    read: impl FnOnce(&palyra_journal::Reader) -> Result<Result<T, AgentError>, JournalError> + Send + 'static,
) -> Result<T, AgentError> {
    engine.shared.options.journal.read(read).await?
}
