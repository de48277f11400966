//! Bindings: which session a place outside belongs to, such as a conversation of a channel or a thread of an editor.

use palyra_common::{BindingId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place outside. Two places are the same if all three fields are; nothing is matched by pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BindingPlace {
    /// The channel's kind or the client's name, such as `matrix` or `zed`: small letters, digits, `.`, `_` and `-`.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9._-]+$"))]
    pub channel: String,
    /// The account of ours, where there are several; empty where there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 200))]
    pub account: String,
    /// The conversation, or the client's own id of a thread; empty where there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 200))]
    pub conversation: String,
}

/// Ties a place to a session; a place that is tied already is tied anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBindingParams {
    /// The place.
    pub place: BindingPlace,
    /// The session.
    pub session_id: SessionId,
    /// The agent that answers there, by name; the session's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Senders, in the channel's own terms, whose messages count as the caller's own words; those of all others are data and never orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub trusted_senders: Vec<String>,
}

/// Which bindings to list, by place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListBindingsParams {
    /// Only those of one session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Only those that name this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only those of one channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Only those of one account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Only those of one conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// How many at most; the daemon has its own upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
    /// Goes on after this one: the last of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<BindingId>,
}

/// A page of bindings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListBindingsResponse {
    /// In the order of their ids.
    pub bindings: Vec<BindingView>,
    /// Pass as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<BindingId>,
}

/// One binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BindingView {
    /// Its id, which one owner's place always has.
    pub binding_id: BindingId,
    /// Whose it is. Places of different owners do not meet.
    pub owner: String,
    /// The place.
    pub place: BindingPlace,
    /// The session.
    pub session_id: SessionId,
    /// The agent that answers there, by name; the session's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Senders whose messages count as the owner's own words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_senders: Vec<String>,
    /// Grows with every change; commands may ask for it with `expected_version`.
    pub version: u64,
    /// When it was set last.
    pub set_at: Timestamp,
    /// By whom.
    pub set_by: String,
}
