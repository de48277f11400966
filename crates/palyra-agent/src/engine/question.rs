//! Why a person is asked about a call, as at most two plain sentences: what is the matter, and what could go wrong.
//!
//! The first is what the policies say, with the fact that is missing; the second follows from which of the shipped guards asked. Nothing in either names a part of Palyra that a person need
//! not know.

use palyra_common::{Provenance, SinkKind};
use palyra_flow::FlowFacts;

/// What could go wrong where nobody knows better.
const MISTAKE: &str = "It may be a mistake, or what the text of another party wants";
/// The same where data go from one place to another.
const GONE: &str = "What goes there cannot be undone";

/// The guards that ask because of a value, and what that value decides.
const ABOUT_VALUES: &[(&str, SinkKind, &str)] = &[
    ("sinks.command", SinkKind::Command, "what is executed"),
    ("sinks.credential", SinkKind::Credential, "which credential is used"),
    ("sinks.destination", SinkKind::Destination, "where this goes"),
    ("sinks.outside_path", SinkKind::Path, "which file is touched"),
];

/// Puts the reasons that `policies` gave, and whatever else speaks against the call, into words.
pub(super) fn phrased(
    mut reasons: Vec<String>,
    policies: &[String],
    flow: &FlowFacts,
    more: Option<String>,
) -> Vec<String> {
    // The first fact that failed is the one that the others follow from.
    reasons.extend(flow.gaps.iter().take(1).cloned());
    reasons.extend(more);
    match could_go_wrong(policies, flow) {
        Some(risk) => vec![format!("{}. {risk}", reasons.join("; "))],
        None => reasons,
    }
}

fn could_go_wrong(policies: &[String], flow: &FlowFacts) -> Option<String> {
    let asked = |guard: &str| policies.iter().any(|policy| policy == guard);
    let written = |kind: SinkKind| {
        let values = flow.arguments.iter().filter(|argument| argument.sink == Some(kind));
        values
            .map(|argument| argument.provenance)
            .any(|provenance| matches!(provenance, Provenance::Untrusted | Provenance::Pointed | Provenance::Variable))
    };
    let about_values = || ABOUT_VALUES.iter().filter(|(guard, ..)| asked(guard));
    if let Some((.., decides)) = about_values().find(|(_, kind, _)| written(*kind)) {
        return Some(format!("The author of that text would decide {decides}"));
    }
    if asked("sinks.flow") {
        return Some(GONE.to_owned());
    }
    (asked("asking.outside_envelope") || about_values().next().is_some()).then(|| MISTAKE.to_owned())
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
