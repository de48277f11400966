//! What money is booked on: one account per run, session, agent, day and month, and one for everything.

use std::fmt;

use palyra_common::{RunId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::day::{Day, Month};
use crate::scope::BudgetScope;

/// One thing that money is spent by or in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Account {
    /// A run.
    Run(RunId),
    /// A session.
    Session(SessionId),
    /// An agent, by name.
    Agent(String),
    /// A UTC day.
    Day(Day),
    /// A UTC month.
    Month(Month),
    /// Everything.
    Global,
}

impl Account {
    /// Which limit bounds it.
    #[must_use]
    pub const fn scope(&self) -> BudgetScope {
        match self {
            Self::Run(_) => BudgetScope::Run,
            Self::Session(_) => BudgetScope::Session,
            Self::Agent(_) => BudgetScope::Agent,
            Self::Day(_) => BudgetScope::Day,
            Self::Month(_) => BudgetScope::Month,
            Self::Global => BudgetScope::Global,
        }
    }

    /// When its limit begins anew by itself, if it ever does.
    #[must_use]
    pub fn renews_at(&self) -> Option<Timestamp> {
        match self {
            Self::Day(day) => Some(day.end()),
            Self::Month(month) => Some(month.end()),
            Self::Run(_) | Self::Session(_) | Self::Agent(_) | Self::Global => None,
        }
    }
}

impl fmt::Display for Account {
    /// As in "the budget of …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(id) => write!(f, "run {id}"),
            Self::Session(id) => write!(f, "session {id}"),
            Self::Agent(name) => write!(f, "agent `{name}`"),
            Self::Day(day) => write!(f, "day {day}"),
            Self::Month(month) => write!(f, "month {month}"),
            Self::Global => f.write_str("all spending"),
        }
    }
}
