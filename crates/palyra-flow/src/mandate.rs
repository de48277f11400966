//! Mandates: what a run is meant to do, stated before it read anything, or granted by a person.
//!
//! A mandate names a tool, the values that its arguments are bound to, how often it may be used, and what its open content may be made of. It is the only thing that lets a
//! consequential call pass without a question ([ADR 0022]). `admission` decides whether a stated mandate counts, `coverage` whether a call is covered by one.
//!
//! INVARIANT: after the first reading, mandates are only used up. They widen through a person alone.
//!
//! [ADR 0022]: ../../../docs/adr/0022-authority-by-mandates.md

use std::collections::{BTreeMap, BTreeSet};

use palyra_common::DataOrigin;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checks::{Check, holds};
use crate::coverage::Planner;
use crate::entity;

/// One intended effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mandate {
    /// The tool's name.
    pub tool: String,
    /// Recipients, hosts or accounts, as the user wrote them, for the one argument that takes them; bind each of several by name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub destinations: BTreeSet<String>,
    /// Argument values by name, as the user wrote them, flags included; `{"each": TOOL}` for what TOOL lists.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Bound>,
    /// How often; once by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Whose data its content may hold, such as `workspace` or `mcp.calendar`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub from: BTreeSet<DataOrigin>,
}

impl Mandate {
    /// A mandate for a tool that binds nothing.
    #[must_use]
    pub fn of(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            destinations: BTreeSet::new(),
            arguments: BTreeMap::new(),
            times: None,
            from: BTreeSet::new(),
        }
    }

    /// Whether it says that each member of a listing may be acted on.
    fn quantifies(&self) -> bool {
        self.arguments.values().any(|bound| matches!(bound, Bound::Each(_)))
    }

    /// Whether it binds the same values of the same tool.
    pub(crate) fn binds_the_same(&self, other: &Self) -> bool {
        let within = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            one.iter().all(|text| other.iter().any(|other| entity::same(text, other)))
        };
        self.tool == other.tool
            && within(&self.destinations, &other.destinations)
            && within(&other.destinations, &self.destinations)
            && self.arguments == other.arguments
    }
}

/// What an argument is bound to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Bound {
    /// A record or an address that a listing holds.
    Each(Each),
    /// This value. A text with `{}` in it is a template for content.
    Exactly(#[schemars(with = "serde_json::Value")] Value),
}

/// Whatever a tool listed when its query was the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Each {
    /// The tool that lists them.
    pub each: String,
}

/// Who stated a mandate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grantor {
    /// The planner, before it had read anything.
    Planner,
    /// A person.
    Person,
}

/// A mandate with what is left of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// What may be done.
    pub mandate: Mandate,
    /// Who said so.
    pub grantor: Grantor,
    /// How often it may still be used; nothing means without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
    /// Whether a person took it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revoked: bool,
    /// The members of its listing, and of its destinations, that were acted on.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub acted_on: BTreeSet<String>,
}

/// The mandates of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Mandates {
    standing: Vec<Standing>,
}

/// What a call that is carried out takes from the mandates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Which mandate, in the order in which they were stated.
    pub mandate: usize,
    /// The members of its listing, and of its destinations where each is meant once, that the call acts on.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub members: BTreeSet<String>,
}

impl Mandates {
    /// Adds what a planner states that has read nothing yet. Says whether it did.
    pub fn state(&mut self, mandates: Vec<Mandate>, planner: Planner) -> bool {
        if planner != Planner::Fresh && holds(Check::MandatesBeforeReading) {
            return false;
        }
        for mandate in mandates {
            let left = uses(&mandate);
            self.add(Standing { mandate, grantor: Grantor::Planner, left, revoked: false, acted_on: BTreeSet::new() });
        }
        true
    }

    /// Adds what a person grants.
    pub fn grant(&mut self, mandates: Vec<Mandate>) {
        for mandate in mandates {
            let left = mandate.times;
            self.add(Standing { mandate, grantor: Grantor::Person, left, revoked: false, acted_on: BTreeSet::new() });
        }
    }

    /// The same mandate stated twice is one. What was used of it stays used, unless a person grants it anew.
    fn add(&mut self, new: Standing) {
        let same = |known: &&mut Standing| {
            known.grantor == new.grantor && !known.revoked && known.mandate.binds_the_same(&new.mandate)
        };
        match self.standing.iter_mut().find(same) {
            Some(known) => {
                let used = match (known.grantor, uses(&known.mandate), known.left) {
                    (Grantor::Planner, Some(all), Some(left)) => all.saturating_sub(left),
                    (Grantor::Planner | Grantor::Person, _, _) => 0,
                };
                known.mandate.from.extend(new.mandate.from);
                known.mandate.times = known.mandate.times.max(new.mandate.times);
                known.left = match (known.left, new.left) {
                    (Some(known), Some(new)) => Some(known.max(new.saturating_sub(used))),
                    _ => None,
                };
            }
            None => self.standing.push(new),
        }
    }

    /// Takes all mandates for a tool back.
    pub fn revoke(&mut self, tool: &str) {
        for standing in self.standing.iter_mut().filter(|standing| standing.mandate.tool == tool) {
            // Places in the list are referred to, so it never gets shorter.
            standing.revoked = true;
            standing.left = Some(0);
        }
    }

    /// All mandates, spent and revoked ones included.
    #[must_use]
    pub fn all(&self) -> &[Standing] {
        &self.standing
    }

    /// Takes what a call uses. Says whether it was still there: two calls that were decided at once may want the same.
    pub fn spend(&mut self, spent: &Spent) -> bool {
        let Some(standing) = self.standing.get_mut(spent.mandate) else { return false };
        let is_spent = standing.left == Some(0) && holds(Check::UsesAreCounted);
        if is_spent || spent.members.iter().any(|member| standing.acted_on.contains(member)) {
            return false;
        }
        standing.left = standing.left.map(|left| left.saturating_sub(1));
        standing.acted_on.extend(spent.members.iter().cloned());
        true
    }
}

impl Mandates {
    /// Takes what a call uses that a person agreed to: what the run said it would do is done then, whether or not this was exactly it. Without, a planner could have a person agree to a
    /// payment that differs a little, and make the stated one as well.
    pub fn fulfil(&mut self, tool: &str, spent: Option<&Spent>) {
        if spent.is_some_and(|spent| self.spend(spent)) {
            return;
        }
        let is_left = |standing: &&mut Standing| {
            standing.mandate.tool == tool
                && standing.grantor == Grantor::Planner
                && standing.left.is_some_and(|left| left > 0)
        };
        if let Some(standing) = self.standing.iter_mut().find(is_left) {
            standing.left = standing.left.map(|left| left.saturating_sub(1));
        }
    }
}

/// How often a stated mandate may be used: as often as it says, once for each of its destinations, once for each member of its listing, or once.
fn uses(mandate: &Mandate) -> Option<u32> {
    match mandate.times {
        Some(times) => Some(times),
        None if mandate.quantifies() => None,
        None => Some(u32::try_from(mandate.destinations.len()).unwrap_or(u32::MAX).max(1)),
    }
}

#[cfg(test)]
#[path = "mandate_tests.rs"]
mod tests;
