//! Sessions: conversations made of runs that share history.

use palyra_common::{SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::RunView;

/// Which sessions to list, newest activity first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessionsParams {
    /// How many at most; the daemon has its own upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Only sessions older than this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<SessionId>,
}

/// A page of sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListSessionsResponse {
    /// Newest first.
    pub sessions: Vec<SessionView>,
    /// Pass as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<SessionId>,
}

/// One session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// The session.
    pub session_id: SessionId,
    /// The name its creator gave it, unique among sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// First words of its first prompt.
    pub title: String,
    /// When it began.
    pub created_at: Timestamp,
    /// When something last happened in it.
    pub updated_at: Timestamp,
    /// How many runs it has.
    pub run_count: u64,
}

/// One session with its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionDetail {
    /// The session itself.
    #[serde(flatten)]
    pub session: SessionView,
    /// Its runs, oldest first.
    pub runs: Vec<RunView>,
}
