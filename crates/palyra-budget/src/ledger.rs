//! The books: what is spent, what calls under way may still spend, and whether one more call fits.
//!
//! One lock guards everything, is held for a few hash look-ups and never across an await. Granting a call checks all limits
//! and books the worst case on all accounts in one critical section; that is the whole argument for why calls made at the
//! same time cannot go beyond a limit together.
//!
//! INVARIANT: an account's `spent + reserved` never passes its hard limit (with what a person granted on top) by a grant. It
//! can pass it only when a call costs more than its worst case, which [`crate::Settlement`] reports, when a limit is lowered
//! below what is spent, or when spending is seeded; in all three cases every further call that costs anything is refused.
//!
//! Calls that cost nothing at worst are always granted: a local model goes on when the money is gone.
//!
//! A call is booked on the day and month in which it was reserved, wherever the clock stands when it is settled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palyra_common::{RunId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::account::Account;
use crate::day::{Day, Month};
use crate::exceeded::Exceeded;
use crate::limits::Limits;
use crate::money::MicroUsd;
use crate::reservation::{Reservation, Warning};

/// A call that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Charge {
    /// The run it is made for.
    pub run_id: RunId,
    /// The session of that run.
    pub session_id: SessionId,
    /// The agent of that run, by name.
    pub agent: String,
    /// When it is made.
    pub at: Timestamp,
    /// What it may cost at worst.
    pub worst: MicroUsd,
}

impl Charge {
    /// The accounts it is booked on, one per scope.
    pub(crate) fn accounts(&self) -> [Account; 6] {
        let day = Day::of(self.at);
        [
            Account::Run(self.run_id),
            Account::Session(self.session_id),
            Account::Agent(self.agent.clone()),
            Account::Day(day),
            Account::Month(Month::of(self.at)),
            Account::Global,
        ]
    }
}

/// What an account spent before this process began, as summed up from the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpendRow {
    /// Whose spending.
    pub account: Account,
    /// How much.
    pub spent: MicroUsd,
}

/// How an account stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// What is spent.
    pub spent: MicroUsd,
    /// What calls under way may still spend.
    pub reserved: MicroUsd,
}

/// One account in the books.
#[derive(Debug, Default)]
struct Entry {
    standing: Standing,
    /// Whether its past is in `spent`.
    seeded: bool,
    /// The largest soft limit that was warned about.
    warned: Option<MicroUsd>,
}

/// Everything behind the lock.
#[derive(Debug, Default)]
pub(crate) struct Books {
    entries: HashMap<Account, Entry>,
}

impl Books {
    pub(crate) fn standing(&self, account: &Account) -> Standing {
        self.entries.get(account).map(|entry| entry.standing).unwrap_or_default()
    }

    fn entry(&mut self, account: &Account) -> &mut Entry {
        self.entries.entry(account.clone()).or_default()
    }

    /// Holds an amount for a call under way, if it fits under every hard limit: on all accounts or on none.
    pub(crate) fn grant(
        &mut self,
        accounts: &[Account],
        amount: MicroUsd,
        limits: &Limits,
        granted: Option<MicroUsd>,
    ) -> Result<(), Exceeded> {
        if amount.is_zero() {
            return Ok(());
        }
        for account in accounts {
            fits(self, account, amount, limits, granted)?;
        }
        for account in accounts {
            let standing = &mut self.entry(account).standing;
            standing.reserved = standing.reserved.saturating_add(amount);
        }
        Ok(())
    }

    /// Gives back what was held and books what was spent.
    pub(crate) fn close(&mut self, accounts: &[Account], held: MicroUsd, spent: MicroUsd) {
        if held.is_zero() && spent.is_zero() {
            return; // Free calls leave no accounts behind.
        }
        for account in accounts {
            let standing = &mut self.entry(account).standing;
            standing.reserved = standing.reserved.saturating_sub(held);
            standing.spent = standing.spent.saturating_add(spent);
        }
    }

    /// Soft limits that are reached and were not told yet. They count as told from now on.
    pub(crate) fn warnings(&mut self, accounts: &[Account], limits: &Limits) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for account in accounts {
            let scope = account.scope();
            let Some(limit) = limits.soft(scope) else { continue };
            let Some(entry) = self.entries.get_mut(account) else { continue };
            if entry.standing.spent < limit || entry.warned >= Some(limit) {
                continue;
            }
            entry.warned = Some(limit);
            let spent = entry.standing.spent;
            warnings.push(Warning { scope, account: account.clone(), limit, spent, hard: limits.hard(scope) });
        }
        warnings
    }
}

/// What the ledger and its reservations share.
#[derive(Debug)]
pub(crate) struct Shared {
    books: Mutex<Books>,
    changes: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        // Nothing under this lock panics half-way through a booking; should it ever, the sums are still the best there are.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who wait that money was given back. Not called under the lock.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// The books, shared by everything that calls models. Cloning is cheap and gives the same books.
#[derive(Debug, Clone)]
pub struct Ledger(Arc<Shared>);

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// Empty books.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Shared { books: Mutex::default(), changes: watch::Sender::new(0) }))
    }

    /// Adds what was spent before this process began. Give every account once, before the first call is made.
    pub fn seed(&self, rows: impl IntoIterator<Item = SpendRow>) {
        let mut books = self.0.books();
        for row in rows {
            let entry = books.entry(&row.account);
            entry.standing.spent = entry.standing.spent.saturating_add(row.spent);
            entry.seeded = true;
        }
    }

    /// Adds calls that were under way when the last process died. Nobody knows what they cost, so they count in full.
    pub fn seed_open(&self, charges: impl IntoIterator<Item = Charge>) {
        let mut books = self.0.books();
        for charge in charges {
            books.close(&charge.accounts(), MicroUsd::ZERO, charge.worst);
        }
    }

    /// Adds the past of one account unless it is known already, for runs and sessions that are taken up again long after the
    /// start. Only the first word counts, so two callers may say it at the same time.
    pub fn remember(&self, row: &SpendRow) {
        let mut books = self.0.books();
        let entry = books.entry(&row.account);
        if !entry.seeded {
            entry.seeded = true;
            entry.standing.spent = entry.standing.spent.saturating_add(row.spent);
        }
    }

    /// Whether the past of an account is known, so that there is nothing to [`Ledger::remember`].
    #[must_use]
    pub fn remembers(&self, account: &Account) -> bool {
        self.0.books().entries.get(account).is_some_and(|entry| entry.seeded)
    }

    /// Drops an account that nothing is under way on, so that finished runs take no memory. Whoever takes it up again has to
    /// [`Ledger::remember`] it first. Nobody may do that at the same time: what they say would be without what was dropped.
    pub fn forget(&self, account: &Account) {
        let mut books = self.0.books();
        if books.standing(account).reserved.is_zero() {
            books.entries.remove(account);
        }
    }

    /// Counts a warning as told, for warnings that the journal has from before this process began.
    pub fn warned(&self, warning: &Warning) {
        let mut books = self.0.books();
        let entry = books.entry(&warning.account);
        entry.warned = entry.warned.max(Some(warning.limit));
    }

    /// How an account stands.
    #[must_use]
    pub fn standing(&self, account: &Account) -> Standing {
        self.0.books().standing(account)
    }

    /// Changes whenever a call under way is settled, released or given up: the time to ask again after an [`Exceeded`] that
    /// [may pass](Exceeded::may_pass_when_others_settle). Subscribe before asking, or the change may be missed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Grants a call if its worst case fits under every hard limit, and holds that much until the reservation is closed.
    ///
    /// `granted` is what a person has approved for this run: for its calls every hard limit counts as that much higher. It is a
    /// new end for the account's whole spending, not a purse of its own, so granting the same amount to many runs still ends
    /// there.
    pub fn reserve(
        &self,
        charge: &Charge,
        limits: &Limits,
        granted: Option<MicroUsd>,
    ) -> Result<Reservation, Exceeded> {
        let accounts = charge.accounts();
        self.0.books().grant(&accounts, charge.worst, limits, granted)?;
        Ok(Reservation::new(Arc::clone(&self.0), accounts, charge.worst, limits.clone(), granted))
    }
}

/// Whether so much more fits on this account.
fn fits(
    books: &Books,
    account: &Account,
    needed: MicroUsd,
    limits: &Limits,
    granted: Option<MicroUsd>,
) -> Result<(), Exceeded> {
    let scope = account.scope();
    let Some(hard) = limits.hard(scope) else { return Ok(()) };
    let limit = hard.saturating_add(granted.unwrap_or_default());
    let Standing { spent, reserved } = books.standing(account);
    // Checked, not saturating: a sum too large to be kept fits under no limit, not even under the largest.
    match spent.checked_add(reserved).and_then(|sum| sum.checked_add(needed)) {
        Some(sum) if sum <= limit => Ok(()),
        _ => Err(Exceeded {
            scope,
            account: account.clone(),
            limit,
            spent,
            reserved,
            needed,
            renews_at: account.renews_at(),
        }),
    }
}
