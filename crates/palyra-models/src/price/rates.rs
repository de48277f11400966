//! Rates per million tokens, and the arithmetic on them.

use palyra_budget::MicroUsd;
use serde::{Deserialize, Serialize};

use crate::event::Usage;

/// Tokens that a rate is for.
const PER: u128 = 1_000_000;

/// Micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Of the request.
    pub input: u64,
    /// Of the request, where the provider had it at the ready.
    pub cached_input: u64,
    /// Of the request, where the provider keeps it at the ready from now on.
    pub cache_write: u64,
    /// Of the answer.
    pub output: u64,
}

impl Rates {
    /// The dearer of both, by kind.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            cached_input: self.cached_input.max(other.cached_input),
            cache_write: self.cache_write.max(other.cache_write),
            output: self.output.max(other.output),
        }
    }

    /// Whether nothing costs anything.
    pub(super) const fn is_free(self) -> bool {
        self.input == 0 && self.cached_input == 0 && self.cache_write == 0 && self.output == 0
    }

    /// What this usage costs. More cached tokens than there was input is a provider's mistake, and costs as it says.
    pub(super) fn cost(self, usage: &Usage) -> MicroUsd {
        let plain = usage.input_tokens.saturating_sub(usage.cached_tokens).saturating_sub(usage.cache_write_tokens);
        rounded_up([
            (plain, self.input),
            (usage.cached_tokens, self.cached_input),
            (usage.cache_write_tokens, self.cache_write),
            (usage.output_tokens, self.output),
        ])
    }

    /// What so many tokens cost at worst: nothing of the request is cheap, and the answer is as long as it may be.
    pub(super) fn worst(self, input_tokens: u64, output_tokens: u64) -> MicroUsd {
        let dearest = self.input.max(self.cached_input).max(self.cache_write);
        rounded_up([(input_tokens, dearest), (output_tokens, self.output)])
    }
}

/// The sum in whole micro-dollars. Rounded once, at the end, so that a call is never charged a fraction for each of its parts.
fn rounded_up<const N: usize>(parts: [(u64, u64); N]) -> MicroUsd {
    // The greatest product of two 64-bit numbers fits a few times over.
    let sum = parts
        .iter()
        .fold(0_u128, |sum, (tokens, rate)| sum.saturating_add(u128::from(*tokens).saturating_mul(u128::from(*rate))));
    MicroUsd(u64::try_from(sum.div_ceil(PER)).unwrap_or(u64::MAX))
}
