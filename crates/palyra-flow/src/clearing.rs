//! Clearance: which places' data a call may hold, and whether its destination may receive them.
//!
//! A destination may always receive what it issued, what is public, and the user's own words. Everything else needs a mandate that says so, whether the tool acts or only reads:
//! a query is a message. What the planner words itself can hold anything that it was shown.

use std::collections::BTreeSet;

use palyra_common::DataOrigin;
use serde_json::Value;

use crate::assess::Judge;
use crate::checks::{Check, holds};
use crate::coverage::Known as _;
use crate::leaves::{Part, parts};
use crate::mandate::{Bound, Mandates, Spent};
use crate::material::scalar;
use crate::schema::is_chosen_from_a_list;

/// Most values of one call that are taken for what they are: words of the user, flags, records of the server, nothing at all. Which of them were chosen, how many, and in which order, can spell
/// what the planner has seen.
const MAX_CHOICES: usize = 16;

/// Most calls of a run to one server whose choices are taken for what they are. The choices of a hundred calls spell something, too.
const MAX_CALLS: usize = 48;

impl Judge<'_> {
    /// The places whose data the call may hold and that its destination is not cleared for.
    pub(crate) fn uncleared(
        &self,
        members: &serde_json::Map<String, Value>,
        spent: Option<&Spent>,
        mandates: &Mandates,
    ) -> BTreeSet<DataOrigin> {
        let Some(destination) = self.call.destination else { return BTreeSet::new() };
        if !holds(Check::Clearance) {
            return BTreeSet::new();
        }
        let mut held = BTreeSet::new();
        let mut choices = 0;
        for (name, value) in members {
            if self.is_dictated(name, value, spent, mandates) {
                continue;
            }
            choices += nodes(value);
            match parts(value) {
                Some(parts) => parts.iter().for_each(|part| self.hold(name, *part, &mut held)),
                None => held.extend(self.seen.all_origins()),
            }
        }
        let calls = self
            .variables
            .0
            .iter()
            .filter(|reading| reading.server.is_some() && reading.server.as_deref() == self.call.server);
        if (choices > MAX_CHOICES || calls.count() > MAX_CALLS) && holds(Check::FewChoices) {
            held.extend(self.seen.all_origins());
        }
        let stated: BTreeSet<&DataOrigin> = match spent {
            Some(spent) => {
                mandates.all().get(spent.mandate).into_iter().flat_map(|standing| &standing.mandate.from).collect()
            }
            // A tool that only reads takes nothing from a mandate, but one may say what its queries are made of.
            None if !self.is_consequential() => {
                let of_tool = mandates
                    .all()
                    .iter()
                    .filter(|standing| standing.mandate.tool == self.call.tool && !standing.revoked);
                of_tool.flat_map(|standing| &standing.mandate.from).collect()
            }
            None => BTreeSet::new(),
        };
        let is_cleared = |origin: &DataOrigin| match origin {
            DataOrigin::User | DataOrigin::Operator => true,
            DataOrigin::Workspace | DataOrigin::Server(_) | DataOrigin::Skill(_) | DataOrigin::Host(_) => {
                origin == destination || stated.contains(origin)
            }
            DataOrigin::Unknown => false,
        };
        held.retain(|origin| !is_cleared(origin));
        held
    }

    /// Whether the mandate that covers the call holds this very value, letter by letter: then it was written before anything untrusted was read, for everybody to see.
    fn is_dictated(&self, name: &str, value: &Value, spent: Option<&Spent>, mandates: &Mandates) -> bool {
        let standing = spent.and_then(|spent| mandates.all().get(spent.mandate));
        match standing.and_then(|standing| standing.mandate.arguments.get(name)) {
            Some(Bound::Exactly(bound)) => bound == value || !holds(Check::DictatedIsTheSame),
            Some(Bound::Each(_)) | None => false,
        }
    }

    /// Adds the places whose data one value or key may hold.
    fn hold(&self, name: &str, part: Part<'_>, held: &mut BTreeSet<DataOrigin>) {
        let text = match part {
            Part::Key(_) if !holds(Check::KeysAreValues) => return,
            Part::Key(key) if self.is_own_key(key) => return,
            Part::Key(key) => key.to_owned(),
            Part::Value(value) => {
                if is_chosen_from_a_list(self.call.schema, name, value) {
                    return;
                }
                // A call of a strict run is judged as the planner wrote it: nothing may depend on what a variable holds, not even whether it holds this part.
                let written = value.as_str().and_then(crate::variables::parse);
                let reading = written.and_then(|(variable, _)| self.variables.reading(variable));
                if let Some(reading) = reading.or_else(|| self.referenced(name, value)) {
                    if holds(Check::ReferencesKeepLabels) {
                        held.extend(reading.label.all_origins());
                    }
                    return;
                }
                let Some(text) = scalar(value) else { return };
                if text.is_empty() {
                    return;
                }
                text
            }
        };
        if self.material.is_issued_by(&text, self.call.server) {
            return;
        }
        let is_own = if holds(Check::PlainSpelling) {
            self.material.is_spelled_by_person(&text)
        } else {
            self.material.is_written_by_person(&text)
                || text.parse().is_ok_and(|number: f64| self.material.says_number(number))
        };
        if is_own {
            return;
        }
        if holds(Check::OwnWordsAreWhatWasSeen) {
            held.extend(self.seen.all_origins());
        }
        // Content may hold variables in its midst.
        let taken = self.call.references.iter().filter(|reference| reference.argument == name);
        let taken = taken.filter(|_| holds(Check::ReferencesKeepLabels));
        for reading in taken.filter_map(|reference| self.variables.reading(reference.variable)) {
            held.extend(reading.label.all_origins());
        }
    }
}

/// How many values there are in a value, itself among them: empty ones and those that hold others tell something, too.
fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
