//! What was used: one row per day, provider, model, session and agent, and sums of such rows.
//!
//! Whoever keeps the journal makes the rows; [`crate::UsageReport`] groups them.

use palyra_common::{SessionId, runtime_contract_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::money::MicroUsd;

runtime_contract_enum! {
    /// What a usage report is grouped by.
    pub enum UsageGrouping("usage_grouping") {
        /// Provider and model.
        Model = "model" | "models",
        /// Session.
        Session = "session" | "sessions",
        /// Agent.
        Agent = "agent" | "agents",
        /// UTC day.
        Day = "day" | "days",
    }
}

/// Tokens, as providers count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenSums {
    /// Tokens of requests.
    pub input: u64,
    /// Tokens of answers, reasoning included.
    pub output: u64,
    /// Of the requests: tokens that were read from a cache.
    pub cached: u64,
    /// Of the requests: tokens that were written to a cache.
    pub cache_write: u64,
    /// Of the answers: tokens of reasoning.
    pub reasoning: u64,
}

impl TokenSums {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

/// Calls, tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageSums {
    /// Calls that were made.
    pub calls: u64,
    /// Their tokens.
    pub tokens: TokenSums,
    /// What they cost.
    pub micro_usd: MicroUsd,
    /// How much of that is assumed, because the price or the usage of a call was not known.
    pub assumed_micro_usd: MicroUsd,
}

impl UsageSums {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.plus(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
            assumed_micro_usd: self.assumed_micro_usd.saturating_add(other.assumed_micro_usd),
        }
    }
}

/// What one session and agent used of one model on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRow {
    /// The UTC day.
    pub day: Day,
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's name as the provider knows it.
    pub model: String,
    /// The session.
    pub session_id: SessionId,
    /// The agent, by name.
    pub agent: String,
    /// What was used.
    #[serde(flatten)]
    pub sums: UsageSums,
}
