//! What a provider is asked: one model call, complete in itself.
//!
//! Providers keep no conversation of their own. A request carries everything, so the same request may be sent again after
//! a crash, and replay can compare requests.

use std::sync::Arc;

use palyra_common::{AuxiliaryTaskKind, RunId, runtime_contract_enum};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{Message, Role, ToolSpec};

/// Why a model is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn of a run: the model may speak and ask for tools.
    Turn,
    /// A helper task with a fixed output contract and no tools.
    Auxiliary(AuxiliaryTaskKind),
}

runtime_contract_enum! {
    /// Whether the model has to call a tool.
    pub enum ToolChoice("tool_choice") {
        /// As it sees fit.
        Auto = "auto",
        /// It has to call one.
        Required = "required" | "any",
        /// It may call none, though tools are described.
        Forbidden = "none" | "forbidden",
    }
}

runtime_contract_enum! {
    /// How much a model is to think before it answers.
    pub enum ReasoningEffort("reasoning_effort") {
        /// As little as it can.
        Minimal = "minimal",
        /// A little.
        Low = "low",
        /// As most tasks need.
        Medium = "medium",
        /// As much as it wants.
        High = "high",
    }
}

/// What the answer's text has to look like.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputShape {
    /// Anything.
    #[default]
    Text,
    /// One JSON document.
    Json {
        /// What the document is called, of letters, digits and `_`.
        name: String,
        /// JSON Schema (2020-12) of it.
        schema: Value,
    },
}

/// One model call. The conversation and the tools are shared: every try at a call gets a request of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// Model to use; empty means the provider's own default.
    pub model: String,
    /// The conversation so far, oldest first.
    pub messages: Arc<Vec<Message>>,
    /// Tools the model may ask for.
    pub tools: Arc<[ToolSpec]>,
    /// Whether it has to ask for one.
    pub tool_choice: ToolChoice,
    /// What the answer has to look like.
    pub output: OutputShape,
    /// How much to think, where the model can be told.
    pub effort: Option<ReasoningEffort>,
    /// How many of the first messages stay the same in later calls of the run, for providers that keep a prefix at the ready.
    pub stable_messages: u32,
    /// The agent that asks, by name; empty if it does not matter.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// Upper bound of the answer.
    pub max_output_tokens: Option<u32>,
    /// Why the model is called.
    pub purpose: Purpose,
    /// The run this call belongs to.
    pub run_id: RunId,
    /// Which model turn of the run this is, from 1.
    pub turn: u32,
}

impl ModelRequest {
    /// A call without tools or bounds: plain text from the provider's default model.
    #[must_use]
    pub fn new(run_id: RunId, turn: u32, purpose: Purpose, messages: Vec<Message>) -> Self {
        Self {
            model: String::new(),
            messages: Arc::new(messages),
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            output: OutputShape::Text,
            effort: None,
            stable_messages: 0,
            agent: String::new(),
            max_output_tokens: None,
            purpose,
            run_id,
            turn,
        }
    }

    /// Adds to the conversation of this request alone.
    pub fn push(&mut self, message: Message) {
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Position of the newest user message.
    pub(crate) fn last_user(&self) -> Option<usize> {
        self.messages.iter().rposition(|message| message.role == Role::User)
    }

    /// What came after the newest user message: the work on it so far.
    pub(crate) fn since_last_user(&self) -> &[Message] {
        self.last_user().and_then(|at| self.messages.get(at + 1..)).unwrap_or_default()
    }
}
