//! Money held for one call, and what becomes of it.
//!
//! A reservation is closed in one of three ways. [`Reservation::settle`] books what the call cost. [`Reservation::release`] gives
//! everything back, for calls that certainly cost nothing because they were never sent. Dropping it books the worst case: a call
//! that was cancelled, that broke off or whose task died has been sent, and providers charge for that without telling what. The
//! other way round, a crash between the call and its booking would be a way to spend without limit.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::exceeded::Exceeded;
use crate::ledger::{Shared, Standing};
use crate::limits::Limits;
use crate::money::MicroUsd;
use crate::scope::BudgetScope;

/// A soft limit that is reached. Told once per account, and again when the limit was raised and is reached anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// What the limit bounds.
    pub scope: BudgetScope,
    /// Whose money it is.
    pub account: Account,
    /// The soft limit.
    pub limit: MicroUsd,
    /// What is spent.
    pub spent: MicroUsd,
    /// Where it will stop, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<MicroUsd>,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "spent {} on {}, over the soft limit of {}", self.spent, self.account, self.limit)?;
        match self.hard {
            Some(hard) => write!(f, "; calls stop at {hard}"),
            None => Ok(()),
        }
    }
}

/// A hard limit that a call went beyond because it cost more than its worst case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breach {
    /// What the limit bounds.
    pub scope: BudgetScope,
    /// Whose money it is.
    pub account: Account,
    /// The hard limit, with what a person has granted on top of it.
    pub limit: MicroUsd,
    /// What is spent.
    pub spent: MicroUsd,
    /// What calls under way may still spend.
    pub reserved: MicroUsd,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[must_use = "warnings are told once, and breaches are worth knowing"]
pub struct Settlement {
    /// What it cost.
    pub actual: MicroUsd,
    /// How much of that was above its worst case.
    pub above_worst: MicroUsd,
    /// Hard limits that are passed because of that. Further calls on these accounts are refused.
    pub breaches: Vec<Breach>,
    /// Soft limits that are reached.
    pub warnings: Vec<Warning>,
}

impl Settlement {
    /// What a person has to know, in one line each: soft limits first, then what cost more than it could.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let mut notices: Vec<String> = self.warnings.iter().map(ToString::to_string).collect();
        if !self.above_worst.is_zero() {
            notices.push(format!("the call cost {}, {} more than was reserved for it", self.actual, self.above_worst));
        }
        notices.extend(self.breaches.iter().map(|breach| {
            format!(
                "spent {} on {}, over its limit of {}; further calls are refused",
                breach.spent, breach.account, breach.limit
            )
        }));
        notices
    }
}

/// Money held for one call. See the file's head for what happens when it is dropped.
#[derive(Debug)]
#[must_use = "dropping a reservation books its worst case"]
pub struct Reservation {
    shared: Arc<Shared>,
    accounts: [Account; 6],
    limits: Limits,
    granted: Option<MicroUsd>,
    /// What is held; nothing once it is closed.
    held: MicroUsd,
}

impl Reservation {
    pub(crate) fn new(
        shared: Arc<Shared>,
        accounts: [Account; 6],
        held: MicroUsd,
        limits: Limits,
        granted: Option<MicroUsd>,
    ) -> Self {
        Self { shared, accounts, limits, granted, held }
    }

    /// What is held.
    #[must_use]
    pub const fn held(&self) -> MicroUsd {
        self.held
    }

    /// Holds more, for a call that has to be made again after a try that may have cost something: both tries may have to be paid. If that
    /// does not fit, what was held stays held.
    pub fn hold_more(&mut self, more: MicroUsd) -> Result<(), Exceeded> {
        self.shared.books().grant(&self.accounts, more, &self.limits, self.granted)?;
        self.held = self.held.saturating_add(more);
        Ok(())
    }

    /// Books what the call cost. Soft limits that earlier calls reached when they were dropped are told here as well.
    pub fn settle(mut self, actual: MicroUsd) -> Settlement {
        let worst = std::mem::take(&mut self.held);
        let above_worst = actual.saturating_sub(worst);
        let mut books = self.shared.books();
        books.close(&self.accounts, worst, actual);
        let warnings = books.warnings(&self.accounts, &self.limits);
        let breaches = if above_worst.is_zero() {
            Vec::new()
        } else {
            self.accounts.iter().filter_map(|account| self.breach(account, books.standing(account))).collect()
        };
        drop(books);
        self.shared.changed();
        Settlement { actual, above_worst, breaches, warnings }
    }

    /// Gives everything back: the call was certainly never sent.
    pub fn release(mut self) {
        let held = std::mem::take(&mut self.held);
        self.shared.books().close(&self.accounts, held, MicroUsd::ZERO);
        self.shared.changed();
    }

    fn breach(&self, account: &Account, standing: Standing) -> Option<Breach> {
        let scope = account.scope();
        let limit = self.limits.hard(scope)?.saturating_add(self.granted.unwrap_or_default());
        let Standing { spent, reserved } = standing;
        (spent.saturating_add(reserved) > limit).then(|| Breach {
            scope,
            account: account.clone(),
            limit,
            spent,
            reserved,
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        if !held.is_zero() {
            self.shared.books().close(&self.accounts, held, held);
            self.shared.changed();
        }
    }
}
