//! Messages of chat channels, on their way to the sessions that their conversations are bound to.

use palyra_common::{RunId, SessionId, Timestamp, runtime_contract_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attachments::AttachmentParams;

/// A message that came in over a chat channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteMessageParams {
    /// The channel's kind, such as `matrix`.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9._-]+$"))]
    pub channel: String,
    /// The account of ours that received it; empty where there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 200))]
    pub account: String,
    /// The room, thread or direct conversation it came in; empty where there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 200))]
    pub conversation: String,
    /// Who wrote it, in the channel's own terms. A claim of the channel, never a principal.
    #[schemars(length(min = 1, max = 200))]
    pub sender: String,
    /// The channel's own id of the message, so that a second delivery has no second effect.
    #[schemars(length(min = 1, max = 200))]
    pub message_id: String,
    /// The text, at most 64 KiB.
    pub text: String,
    /// When it was written, as the channel says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
    /// Files that came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub attachments: Vec<AttachmentParams>,
}

runtime_contract_enum! {
    /// What became of a message of a channel.
    pub enum RouteDisposition("route_disposition") {
        /// A run was started for it.
        Started = "started",
        /// It waits behind a run that is under way.
        Queued = "queued",
        /// It had been delivered before.
        Duplicate = "duplicate",
        /// No binding wants it.
        Ignored = "ignored",
    }
}

/// What became of a message of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteMessageResponse {
    /// In one word.
    pub disposition: RouteDisposition,
    /// The session it went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The run that answers it, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}
