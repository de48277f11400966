//! What a provider answers: a stream of small events.
//!
//! Events are raw material in the order of arrival. [`crate::TurnAssembler`] makes a whole turn of them.

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};

runtime_contract_enum! {
    /// Why a model stopped.
    pub enum StopReason("stop_reason") {
        /// It said all it had to say.
        EndTurn = "end_turn" | "stop",
        /// It waits for the results of tool calls.
        ToolUse = "tool_use" | "tool_calls",
        /// The answer reached its upper bound and is cut off.
        MaxTokens = "max_tokens" | "length",
        /// The provider withheld the answer.
        ContentFilter = "content_filter",
        /// Anything else.
        Other = "other",
    }
}

/// Tokens a call has used, as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
}

/// One event of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelEvent {
    /// More text.
    TextDelta(String),
    /// A part of a tool call, or a whole one.
    ToolCallDelta {
        /// Which call of the turn; some servers leave it out.
        index: Option<u32>,
        /// The call's id; most servers send it in the first part only.
        id: Option<String>,
        /// The tool's name; most servers send it in the first part only.
        name: Option<String>,
        /// More of the arguments' text.
        arguments: String,
    },
    /// Tokens used so far; a later event replaces an earlier one.
    Usage(Usage),
    /// The answer is complete. Always the last event.
    Finished(StopReason),
}
