//! Who the caller is.

use palyra_common::{PrincipalRole, RunId, TokenScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approvals::ApprovalView;

/// The caller as the daemon knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrincipalView {
    /// Such as `uid:1000` or `user:alice`.
    pub principal: String,
    /// The most it may do.
    pub role: PrincipalRole,
    /// What it may do.
    pub scopes: Vec<TokenScope>,
    /// How it came in.
    pub via: String,
}

/// What a client whose connection broke needs to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReconnectResponse {
    /// The caller.
    pub principal: PrincipalView,
    /// Version of the daemon.
    pub version: String,
    /// The caller's runs that are not over: follow each from the position after the last one seen.
    pub active_runs: Vec<ActiveRunView>,
    /// What waits for a person.
    pub pending_approvals: Vec<ApprovalView>,
}

/// A run that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveRunView {
    /// The run.
    pub run_id: RunId,
    /// The newest position on its tape.
    pub last_seq: u64,
}

/// Logs a person in to the console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsoleLoginParams {
    /// The local token or an API token.
    pub token: String,
}

/// A session of the console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsoleSessionResponse {
    /// To be sent as `X-Palyra-Csrf` with every change.
    pub csrf: String,
    /// Who is logged in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<PrincipalView>,
}
