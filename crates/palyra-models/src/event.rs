//! What a provider answers: a stream of small events.
//!
//! Events are raw material in the order of arrival. [`crate::TurnAssembler`] makes a whole turn of them.

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};

use crate::attempt::{Answering, Attempt};
use crate::reasoning::ReasoningBlock;

runtime_contract_enum! {
    /// Why a model stopped.
    pub enum StopReason("stop_reason") {
        /// It said all it had to say.
        EndTurn = "end_turn" | "stop",
        /// It waits for the results of tool calls.
        ToolUse = "tool_use" | "tool_calls",
        /// The answer reached its upper bound and is cut off.
        MaxTokens = "max_tokens" | "length",
        /// It answered, and says that it did not do what was asked. Language models have no way to say so; the offline planner and scripts have.
        NotDone = "not_done",
        /// The provider withheld the answer.
        ContentFilter = "content_filter" | "refusal" | "safety",
        /// Anything else.
        Other = "other",
    }
}

/// Tokens a call has used, as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the answer, those of its reasoning included.
    pub output_tokens: u64,
    /// Of the request: tokens that the provider had at the ready, which are cheaper.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Of the request: tokens that the provider keeps at the ready from now on, which are dearer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Of the answer: tokens of reasoning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// What the provider says the call cost, in micro-USD, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            cost_micro_usd: match (self.cost_micro_usd, other.cost_micro_usd) {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (Some(cost), None) | (None, Some(cost)) => Some(cost),
                (None, None) => None,
            },
        }
    }

    /// Tokens of request and answer, nothing told about caches or reasoning.
    #[must_use]
    pub const fn plain(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            cached_tokens: 0,
            cache_write_tokens: 0,
            reasoning_tokens: 0,
            cost_micro_usd: None,
        }
    }
}

/// One event of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelEvent {
    /// A try that failed before another one is made, or another provider is asked. It takes back everything since the one
    /// before: text, calls, reasoning, usage. Whoever shows or keeps parts of an answer drops them here.
    Attempted(Attempt),
    /// Nobody can be asked now, and the call waits: for whom, why, and for how long at least. Nothing is taken back.
    Waiting(Attempt),
    /// Who answers; comes before anything that is answered.
    Answering(Answering),
    /// More text.
    TextDelta(String),
    /// More of what the model thinks, for people to read along.
    ReasoningDelta(String),
    /// A whole block of reasoning, to be kept for later turns.
    Reasoning(ReasoningBlock),
    /// Something in the answer was wrong and was put right; what, in one line.
    Repaired(String),
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
