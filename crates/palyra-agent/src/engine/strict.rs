//! Deciding on calls of strict runs whose arguments were taken from variables: by what the planner wrote, never by what the variables hold.
//!
//! Whether a person is asked must not tell anything about untrusted bytes. So such a call is judged with its references in place, and where content could hold an
//! address or a secret that somebody would be asked about, they are asked whatever it holds.

use palyra_common::{Confidentiality, Consequence, Integrity, Label, Provenance, SinkKind};
use palyra_flow::{ArgumentFacts, FlowFacts, Reference, Variables};
use palyra_tools::ToolDeclaration;

use crate::machine::Machine;

/// The argument that keeps a call from being made at all: one that steers what a tool of Palyra's own touches, and that was taken from a variable.
pub(super) fn steered_blindly<'a>(tool: &ToolDeclaration, references: &'a [Reference]) -> Option<&'a str> {
    if tool.server.is_some() || tool.skill.is_some() {
        return None;
    }
    let steers = |argument: &str| {
        tool.sinks.iter().filter(|sink| sink.argument == argument).any(|sink| match sink.kind {
            SinkKind::Destination | SinkKind::Command | SinkKind::Path | SinkKind::Credential => true,
            SinkKind::Content | SinkKind::Amount => false,
        })
    };
    references.iter().map(|reference| reference.argument.as_str()).find(|argument| steers(argument))
}

/// What the planner is told then.
pub(super) fn told(argument: &str) -> String {
    format!(
        "in a strict run `{argument}` cannot be taken from a variable, because what happens would depend on untrusted text; write it yourself"
    )
}

/// Adds to the facts about a call, which were found without looking into variables, that what was taken from them may be anything. A person is asked about that where
/// the effect matters outside of the run.
pub(super) fn may_hold_anything(flow: &mut FlowFacts, machine: &Machine, references: &[Reference]) {
    if flow.consequence != Consequence::Consequential {
        return;
    }
    let variables = Variables(machine.readings());
    for reference in references {
        let label = variables.reading(reference.variable).map(|reading| reading.label.clone());
        let source = variables.reading(reference.variable).map(palyra_flow::Reading::described);
        flow.arguments.push(ArgumentFacts {
            name: format!("{}#1", reference.argument),
            sink: Some(SinkKind::Destination),
            provenance: Provenance::Untrusted,
            label: label.unwrap_or_else(|| Label::new(Integrity::Untrusted, Confidentiality::Private)),
            value: Some(format!("whatever ${} holds", written(reference))),
            source,
            sentence: None,
        });
    }
}

fn written(reference: &Reference) -> String {
    let path: String = reference.path.iter().map(|step| format!(".{step}")).collect();
    format!("v{}{path}", reference.variable)
}
