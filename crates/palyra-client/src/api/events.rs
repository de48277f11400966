//! Records of clients' own: telemetry of surfaces, and whatever a client wants on the journal.

use palyra_common::{Digest, RunId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A record that a client wants on the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendEventParams {
    /// `ux.` and dotted words for telemetry of surfaces, such as `ux.surface.opened`; `client.` and dotted words for everything else.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^(ux|client)(\\.[a-z0-9_]+)+$"))]
    pub kind: String,
    /// The session it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The run it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// What it says: for telemetry `surface`, `section`, `outcome` and the rest of its contract, otherwise any record of at most 16 KiB.
    pub payload: serde_json::Map<String, serde_json::Value>,
}

/// Where the record stands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppendEventResponse {
    /// Its position on the journal.
    pub seq: u64,
    /// Its link of the hash chain.
    pub hash: Digest,
}
