//! Finding what was said before.

use palyra_common::{Label, RunId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallParams {
    /// In plain words.
    #[schemars(length(min = 1, max = 8192))]
    pub query: String,
    /// Only in this session; in all of the caller's own if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// How many pieces at most; 8 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 24))]
    pub limit: Option<u32>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecallResponse {
    /// The pieces, the most fitting first.
    pub pieces: Vec<RecalledView>,
    /// What put them in this order: a `model`, or how many `words` of the query they have.
    pub ranked_by: String,
    /// Why no model did, where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The label of all of it.
    pub label: Label,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecalledView {
    /// In which session.
    pub session_id: SessionId,
    /// In which run.
    pub run_id: RunId,
    /// Position on that run's tape.
    pub seq: u64,
    /// Whether it was `asked` or `answered`.
    pub said: String,
    /// The text around what was found.
    pub text: String,
    /// How far it may be trusted and shown.
    pub label: Label,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// Why, in a sentence of the model; empty if only words were compared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}
