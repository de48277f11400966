//! What model calls may cost.
//!
//! Money is [`MicroUsd`], whole millionths of a dollar. [`Limits`] bound it by [`BudgetScope`]: per run, session, agent, UTC day,
//! UTC month and altogether. The [`Ledger`] is shared by everything that calls models: a call reserves its worst case before it
//! is made and settles what it really cost afterwards, so that calls made at the same time cannot spend the same money twice.
//! [`UsageRow`] and [`UsageReport`] say afterwards what went where.
//!
//! This crate decides by arithmetic alone. It keeps nothing on disk (past sums are given to it by [`Ledger::seed`]), knows no
//! prices (they stand beside the providers, in `palyra-models`) and never reads the clock.

mod account;
mod day;
mod error;
mod exceeded;
mod ledger;
mod limits;
mod money;
mod report;
mod reservation;
mod scope;
mod usage;

pub use account::Account;
pub use day::{Day, Month};
pub use error::BudgetError;
pub use exceeded::Exceeded;
pub use ledger::{Charge, Ledger, SpendRow, Standing};
pub use limits::{BudgetLimit, Limits, Threshold};
pub use money::MicroUsd;
pub use report::{UsageGroup, UsageReport};
pub use reservation::{Breach, Reservation, Settlement, Warning};
pub use scope::BudgetScope;
pub use usage::{TokenSums, UsageGrouping, UsageRow, UsageSums};
