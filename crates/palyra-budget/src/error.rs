//! What can be wrong with amounts, dates and limits that are given. A limit that is reached is [`crate::Exceeded`].

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};
use thiserror::Error;

use crate::money::MicroUsd;
use crate::scope::BudgetScope;

/// Something given to the ledger makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BudgetError {
    /// A text that is no amount of money.
    #[error("`{value}` is not an amount in US dollars: {reason}")]
    InvalidAmount {
        /// What was given.
        value: String,
        /// Why it is none.
        reason: &'static str,
    },
    /// A text that is no date.
    #[error("`{value}` is not a date such as 2026-11-15")]
    InvalidDate {
        /// What was given.
        value: String,
    },
    /// A warning that could never come.
    #[error("the soft limit of {scope} is {soft}, above its hard limit of {hard}, so it would never warn")]
    SoftAboveHard {
        /// Which limit.
        scope: BudgetScope,
        /// Where it warns.
        soft: MicroUsd,
        /// Where it stops.
        hard: MicroUsd,
    },
    /// The same thing bounded twice.
    #[error("{scope} is limited twice")]
    LimitedTwice {
        /// Which limit.
        scope: BudgetScope,
    },
}

impl ToStableError for BudgetError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::InvalidAmount { .. } => {
                StableErrorEnvelope::new("amount_invalid", ErrorCategory::Validation, message)
                    .hint("write dollars with at most six decimal places, such as `$5` or `0.50 USD`")
            }
            Self::InvalidDate { .. } => StableErrorEnvelope::new("date_invalid", ErrorCategory::Validation, message)
                .hint("write the date as YYYY-MM-DD, such as 2026-11-15"),
            Self::SoftAboveHard { scope, .. } => {
                StableErrorEnvelope::new("budget_limits_invalid", ErrorCategory::Validation, message)
                    .hint(format!("set the soft limit of {scope} below the hard limit, or remove one of them"))
            }
            Self::LimitedTwice { scope } => {
                StableErrorEnvelope::new("budget_limits_invalid", ErrorCategory::Validation, message)
                    .hint(format!("give the limits of {scope} only once"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_to_do() {
        let errors = [
            (BudgetError::InvalidAmount { value: "x".into(), reason: "r" }, "amount_invalid"),
            (BudgetError::InvalidDate { value: "x".into() }, "date_invalid"),
            (
                BudgetError::SoftAboveHard { scope: BudgetScope::Day, soft: MicroUsd(2), hard: MicroUsd(1) },
                "budget_limits_invalid",
            ),
            (BudgetError::LimitedTwice { scope: BudgetScope::Day }, "budget_limits_invalid"),
        ];
        for (error, code) in errors {
            let envelope = error.to_stable();
            assert_eq!(envelope.code, code);
            assert!(envelope.recovery_hint.is_some() && !envelope.retryable, "{code}");
        }
    }
}
