//! Past decisions against a proposed set: which would have been different?

use palyra_common::ToolVerdict;
use serde::{Deserialize, Serialize};

use crate::{Decision, PolicySet, Request};

/// A decision that was made, with the requests it answered: the effects of one call are decided together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastDecision {
    /// Where it is found, such as a record number and a call.
    pub reference: String,
    /// What was asked.
    pub requests: Vec<Request>,
    /// What was answered.
    pub verdict: ToolVerdict,
}

/// A decision that would be different now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedDecision {
    /// Where the past decision is found.
    pub reference: String,
    /// What was answered.
    pub was: ToolVerdict,
    /// What would be answered, and why.
    pub now: Decision,
}

impl ChangedDecision {
    /// Whether the proposed set is the more permissive one here.
    #[must_use]
    pub fn widens(&self) -> bool {
        self.now.verdict < self.was
    }
}

/// The outcome of a simulation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Simulation {
    /// How many past decisions were looked at.
    pub considered: u64,
    /// Those that would be different, in the order they were given.
    pub changed: Vec<ChangedDecision>,
}

/// Decides past requests again with a proposed set.
pub fn simulate(past: impl IntoIterator<Item = PastDecision>, proposed: &PolicySet) -> Simulation {
    let mut simulation = Simulation::default();
    for decision in past {
        simulation.considered += 1;
        let now = proposed.decide_all(&decision.requests);
        if now.verdict != decision.verdict {
            simulation.changed.push(ChangedDecision { reference: decision.reference, was: decision.verdict, now });
        }
    }
    simulation
}
