//! Why a call may not be made: it could cost more than a limit leaves.

use palyra_common::{ErrorCategory, Retry, StableErrorEnvelope, Timestamp, ToStableError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::account::Account;
use crate::money::MicroUsd;
use crate::scope::BudgetScope;

/// A call that was refused because its worst case does not fit under a hard limit. Nothing was reserved or spent by it.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[error(
    "the budget of {account} is {limit}: {spent} spent, {reserved} reserved by calls in progress, and this call may cost up to {needed}"
)]
pub struct Exceeded {
    /// What the limit bounds.
    pub scope: BudgetScope,
    /// Whose money it is.
    pub account: Account,
    /// The hard limit, with what a person has granted on top of it.
    pub limit: MicroUsd,
    /// What is spent already.
    pub spent: MicroUsd,
    /// What calls under way may still spend.
    pub reserved: MicroUsd,
    /// What this call may cost at worst.
    pub needed: MicroUsd,
    /// When the limit begins anew by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renews_at: Option<Timestamp>,
}

impl Exceeded {
    /// By how much the limit is too small: what a person has to grant at least, on top of what is granted already.
    #[must_use]
    pub fn shortfall(&self) -> MicroUsd {
        self.spent.saturating_add(self.reserved).saturating_add(self.needed).saturating_sub(self.limit)
    }

    /// Whether the call would fit if all calls under way cost nothing. Then it may be worth to wait for them.
    #[must_use]
    pub fn may_pass_when_others_settle(&self) -> bool {
        !self.reserved.is_zero() && self.spent.saturating_add(self.needed) <= self.limit
    }
}

impl ToStableError for Exceeded {
    fn to_stable(&self) -> StableErrorEnvelope {
        let wait = match self.renews_at {
            _ if self.may_pass_when_others_settle() => ", wait until the calls in progress finish".to_owned(),
            Some(at) => format!(", wait until {}", at.to_rfc3339()),
            None => String::new(),
        };
        let retry = if self.may_pass_when_others_settle() || self.renews_at.is_some() {
            Retry::MayHelp
        } else {
            Retry::Pointless
        };
        StableErrorEnvelope::new("budget_exceeded", ErrorCategory::Policy, self.to_string())
            .hint(format!(
                "raise the hard limit of {}{wait}, approve {} more for this run, or use a cheaper model or a lower limit on the answer's length",
                self.scope,
                self.shortfall()
            ))
            .retryable(retry)
            .details(serde_json::json!({
                "scope": self.scope,
                "account": self.account,
                "limit_micro_usd": self.limit,
                "spent_micro_usd": self.spent,
                "reserved_micro_usd": self.reserved,
                "needed_micro_usd": self.needed,
                "shortfall_micro_usd": self.shortfall(),
                "renews_at": self.renews_at.map(Timestamp::to_rfc3339),
            }))
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::RunId;

    use super::*;
    use crate::day::Day;

    fn exceeded(account: Account, reserved: u64, needed: u64) -> Exceeded {
        Exceeded {
            scope: account.scope(),
            renews_at: account.renews_at(),
            account,
            limit: MicroUsd::dollars(5),
            spent: MicroUsd::dollars(4),
            reserved: MicroUsd(reserved),
            needed: MicroUsd(needed),
        }
    }

    #[test]
    fn the_hint_says_how_to_go_on() {
        let day = exceeded(Account::Day("2026-11-15".parse::<Day>().unwrap()), 0, 1_250_000).to_stable();
        assert_eq!(day.code, "budget_exceeded");
        assert!(day.retryable);
        let hint = day.recovery_hint.unwrap();
        assert!(hint.contains("hard limit of day, wait until 2026-11-16T00:00:00.000Z"), "{hint}");
        assert!(hint.contains("approve $0.25 more"), "{hint}");
        assert_eq!(
            day.message,
            "the budget of day 2026-11-15 is $5.00: $4.00 spent, $0.00 reserved by calls in progress, and this call may cost up to $1.25"
        );

        let run = exceeded(Account::Run(RunId::from_u128(1)), 0, 1_250_000).to_stable();
        assert!(!run.retryable);
        assert!(!run.recovery_hint.unwrap().contains("wait"));
    }

    #[test]
    fn waiting_for_others_is_told_only_where_it_may_help() {
        assert!(exceeded(Account::Global, 600_000, 500_000).may_pass_when_others_settle());
        assert!(
            exceeded(Account::Global, 600_000, 500_000)
                .to_stable()
                .recovery_hint
                .unwrap()
                .contains("in progress finish")
        );
        assert!(!exceeded(Account::Global, 600_000, 1_500_000).may_pass_when_others_settle());
        assert!(!exceeded(Account::Global, 0, 1_000_000).may_pass_when_others_settle());
    }
}
