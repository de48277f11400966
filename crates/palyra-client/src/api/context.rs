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
    /// The model that answered, or would.
    #[serde(default)]
    pub model: String,
    /// Whether a language model answered. The offline planner reads no descriptions of tools, so none are counted for it.
    #[serde(default = "yes")]
    pub language_model: bool,
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
    /// The tools that the model was told about, in the order of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered_tools: Vec<OfferedToolView>,
    /// Names of tools that it could have searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred_tools: Vec<String>,
    /// What the request costs on each wire; empty if no language model answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wires: Vec<WireCostView>,
}

const fn yes() -> bool {
    true
}

/// A tool that a model was told about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedToolView {
    /// Its name.
    pub name: String,
    /// About how many tokens its description takes.
    pub tokens: u32,
    /// Whether every run is told about it.
    pub core: bool,
}

/// Tokens of a request on one wire, by what they are for, counted with the vocabulary `o200k_base`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireCostView {
    /// The wire: `chat`, `responses`, `anthropic`, `gemini` or `ollama`.
    pub wire: String,
    /// Palyra's instructions, and what stands around every request.
    pub system: u64,
    /// Tools that every run is offered.
    pub core_tools: u64,
    /// Tools of servers, skills and clients, and those that the run came to need.
    pub extra_tools: u64,
    /// Project files, the run's surroundings, the operator's instructions for the agent.
    pub project: u64,
    /// Earlier exchanges of the session.
    pub history: u64,
    /// The task.
    pub task: u64,
    /// Everything that followed it.
    pub steps: u64,
    /// All of it.
    pub total: u64,
}

/// One part of a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextSegmentView {
    /// What it is: `tools`, `instructions`, `project`, `surroundings`, `agent`, `history`, `user`, `assistant`, `tool_result`, `verdict` or `summary`.
    pub kind: String,
    /// Where it comes from, such as a file or a tool.
    pub source: String,
    /// At most how many tokens it takes; the first part's include what is wrapped around the whole request.
    pub tokens: u32,
    /// How far it may be trusted and shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// What the model read; for tools, their names.
    pub text: String,
}
