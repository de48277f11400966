//! Whether a stated mandate counts: what it binds has to be the user's own, and it may not be used more often than the user said.

use palyra_common::{DataOrigin, Provenance, ToolClassification};
use serde_json::Value;

use crate::checks::{Check, holds};
use crate::coverage::Role;
use crate::leaves::{Part, parts};
use crate::mandate::{Bound, Mandate};
use crate::material::{Material, scalar};
use crate::schema::is_chosen_from_a_list;

/// Why a mandate does not count, for the planner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The tool that it is for.
    pub tool: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Checks a mandate against what the user and the operator wrote. `tool` is the classification and the schema of its tool, if there is such a tool.
#[must_use]
pub fn admit(mandate: &Mandate, tool: Option<(&ToolClassification, &Value)>, material: &Material) -> Option<Refused> {
    let refused = |reason: String| Some(Refused { tool: mandate.tool.clone(), reason });
    let Some((classification, schema)) = tool else {
        return refused("there is no such tool".to_owned());
    };
    let is_written = |text: &str| {
        !holds(Check::MandatesBindUsersWords)
            || material.is_written_by_person(text)
            || material.names_something(text, None)
            || text.parse().is_ok_and(|number: f64| material.says_number(number))
    };
    if let Some(destination) = mandate.destinations.iter().find(|destination| !is_written(destination)) {
        return refused(format!("`{destination}` is not in the request; leave out what the user did not name"));
    }
    for (name, bound) in &mandate.arguments {
        let sink = classification.sinks.get(name).copied();
        let Bound::Exactly(value) = bound else {
            // Whoever writes an amount means it, and not any that a record has.
            let is_amount = Role::of(sink, false) == Role::Limit;
            if is_amount && material.says_an_amount() && holds(Check::WrittenAmountsBind) {
                return refused(format!("`{name}`: the request says how much; bind it to that"));
            }
            continue;
        };
        let is_free = match Role::of(sink, is_chosen_from_a_list(schema, name, value)) {
            Role::Content | Role::Choice => true,
            Role::Target | Role::Limit => false,
            Role::Command => is_written_command(value, material),
        };
        let Some(parts) = parts(value) else {
            return refused(format!("`{name}` holds too many values"));
        };
        let texts = parts.into_iter().filter_map(|part| match part {
            Part::Key(_) => None,
            Part::Value(value) => scalar(value),
        });
        if !is_free && let Some(text) = texts.into_iter().find(|text| !is_written(text)) {
            return refused(format!("`{name}`: `{text}` is not in the request; leave out what the user did not name"));
        }
    }
    if let Some(times) = mandate.times {
        let named = u32::try_from(mandate.destinations.len()).unwrap_or(u32::MAX).max(1);
        if holds(Check::TimesAreWritten) && times > named && !material.says_number(f64::from(times)) {
            return refused(format!("the request does not say {times} times"));
        }
    }
    if mandate.from.contains(&DataOrigin::Unknown) {
        return refused("`unknown` names no place".to_owned());
    }
    None
}

/// Whether a person wrote these words as one command line.
fn is_written_command(value: &Value, material: &Material) -> bool {
    let words: Option<Vec<&str>> = value.as_array().map(|words| words.iter().filter_map(Value::as_str).collect());
    words.is_some_and(|words| material.trace_command(&words).provenance == Provenance::Trusted)
}
