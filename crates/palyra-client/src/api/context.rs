//! What a model saw.

use palyra_common::{Digest, Label, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which call's context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunContextParams {
    /// Which turn; the newest if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Whether to tell as well what a summary stands for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub originals: bool,
}

/// The context of one model call, by its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunContextResponse {
    /// The run.
    pub run_id: RunId,
    /// Which turn.
    pub turn: u32,
    /// Which attempt at it.
    pub attempt: u32,
    /// Turns that the run had so far.
    pub turns: u32,
    /// Tokens that fit the model's window.
    pub window: u32,
    /// At most how many of them the parts take together, as budgets count them for the model that answered.
    pub tokens: u32,
    /// How many the provider counted itself, where it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
    /// How many of the first messages are the same in every call of the run.
    pub stable_messages: u32,
    /// Digest of the messages, as recorded with the call.
    pub digest: Digest,
    /// Whether the parts below are exactly what was sent. If not, an artifact or an earlier version is missing.
    pub exact: bool,
    /// The parts, in the order of the model's reading.
    pub segments: Vec<ContextSegmentView>,
    /// What the summary among the parts stands for, oldest first, if it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub originals: Vec<ContextSegmentView>,
}

/// One part of a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextSegmentView {
    /// What it is: `tools`, `instructions`, `agent`, `history`, `user`, `assistant`, `tool_result`, `verdict` or `summary`.
    pub kind: String,
    /// Where it comes from, such as a file or a tool.
    pub source: String,
    /// At most how many tokens it takes; the first part's include what is wrapped around the whole request.
    pub tokens: u32,
    /// How far it may be trusted and shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// What the model read; empty for tools.
    pub text: String,
}
