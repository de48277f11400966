//! The rule: what policies are told about a proposed call.
//!
//! For each argument: what it decides and where its value comes from. For the call: whether it was meant, how confidential its content may
//! be where it goes, and what the planner had seen. This is the one place where information flow is judged; policies only read it.

use std::collections::BTreeSet;

use palyra_common::{
    Confidentiality, Consequence, DataOrigin, Integrity, Label, Provenance, SinkKind, ToolClassification, command_line,
};
use serde_json::Value;

use crate::checks::{Check, holds};
use crate::coverage::{Coverage, Covered, Known, Planner, Role, coverage};
use crate::leaves::{Part, leaves, parts};
use crate::links::{self, LinkKind};
use crate::mandate::{Bound, Mandates, Spent};
use crate::material::{Material, Trace, leaf_label, scalar};
use crate::reading::{Reading, SourceNaming};
use crate::schema::{is_chosen_from_a_list, is_default, names_property};
use crate::variables::{Reference, Variables};

/// A call that a model proposes.
#[derive(Debug, Clone, Copy)]
pub struct Proposed<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The outside server it belongs to, if any.
    pub server: Option<&'a str>,
    /// Where the arguments go, if they leave the workspace.
    pub destination: Option<&'a DataOrigin>,
    /// How the tool is classified.
    pub classification: &'a ToolClassification,
    /// JSON Schema of the arguments.
    pub schema: &'a Value,
    /// The arguments, references resolved.
    pub arguments: &'a Value,
    /// What was taken from variables.
    pub references: &'a [Reference],
}

/// One argument as policies see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentFacts {
    /// Its name; a link found inside content is `name#1`, `name#2`, ….
    pub name: String,
    /// What it decides, if anything.
    pub sink: Option<SinkKind>,
    /// Where its value comes from; the worst of its parts.
    pub provenance: Provenance,
    /// The label of its value.
    pub label: Label,
    /// The value, unless it is content.
    pub value: Option<String>,
    /// Where the value was found.
    pub source: Option<String>,
    /// The sentence it was found in.
    pub sentence: Option<String>,
}

/// All that policies are told about information flow in a call.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowFacts {
    /// The arguments.
    pub arguments: Vec<ArgumentFacts>,
    /// Whether the effect matters outside the run.
    pub consequence: Consequence,
    /// What the call would take from the run's mandates, if one covers it.
    pub mandate: Option<Spent>,
    /// Why no mandate covers the call; empty if one does, or if none is needed.
    pub gaps: Vec<String>,
    /// The places whose data the call may hold and that its destination is not cleared for.
    pub uncleared: BTreeSet<DataOrigin>,
    /// The highest confidentiality that may go where this call goes.
    pub clearance: Confidentiality,
    /// The label of everything the planner has seen.
    pub seen: Label,
    /// Whether the user named the place that this call reads.
    pub source: SourceNaming,
}

impl FlowFacts {
    /// Whether the run was meant to do this.
    #[must_use]
    pub const fn is_meant(&self) -> bool {
        self.mandate.is_some()
    }
}

/// Judges a call by what the run has read.
#[must_use]
pub fn assess(
    call: Proposed<'_>,
    material: &Material,
    readings: &[Reading],
    seen: &Label,
    mandates: &Mandates,
) -> FlowFacts {
    let empty = serde_json::Map::new();
    let members = call.arguments.as_object().unwrap_or(&empty);
    let judge = Judge { call, material, variables: Variables(readings), seen };
    let covered = judge.coverage(members, mandates);
    let mut arguments = Vec::new();
    for (name, value) in members {
        judge.argument(name, value, &mut arguments);
    }
    let (mandate, gaps) = match covered {
        Some(Coverage::By(spent)) => (Some(*spent), Vec::new()),
        Some(Coverage::Nothing(gaps)) => (None, gaps),
        None => (None, Vec::new()),
    };
    judge.bind(mandate.as_ref(), mandates, members, &mut arguments);
    choosing_tells(&mut arguments, seen);
    let destinations = || arguments.iter().filter(|argument| argument.sink == Some(SinkKind::Destination));
    FlowFacts {
        clearance: judge.clearance(destinations().map(|argument| argument.provenance).max(), readings),
        source: judge.source_naming(members),
        consequence: call.classification.consequence,
        uncleared: judge.uncleared(members, mandate.as_ref(), mandates),
        mandate,
        gaps,
        seen: seen.clone(),
        arguments,
    }
}

impl Known for Judge<'_> {
    fn is_listed_by(&self, tool: &str, value: &str) -> bool {
        self.material.is_listed_by(tool, value, self.call.server)
    }

    fn is_handle(&self, value: &str) -> bool {
        self.material.is_issued_by(value, self.call.server)
    }

    fn names_something(&self, word: &str) -> bool {
        self.material.names_something(word, self.call.server)
    }

    fn is_own_key(&self, key: &str) -> bool {
        names_property(self.call.schema, key)
    }

    fn is_default(&self, name: &str, value: &Value) -> bool {
        is_default(self.call.schema, name, value)
    }

    fn is_number_of_user(&self, number: f64) -> bool {
        self.material.says_number(number)
    }
}

/// What the user wrote word for word may go where the user said. Anywhere else, which of the user's words were chosen can tell what the planner
/// has seen.
fn choosing_tells(arguments: &mut [ArgumentFacts], seen: &Label) {
    let elsewhere = |argument: &ArgumentFacts| {
        argument.sink == Some(SinkKind::Destination) && argument.provenance != Provenance::Trusted
    };
    if holds(Check::ChoosingTells) && arguments.iter().any(elsewhere) {
        for content in arguments.iter_mut().filter(|argument| argument.sink == Some(SinkKind::Content)) {
            content.label.confidentiality = content.label.confidentiality.max(seen.confidentiality);
        }
    }
}

/// A call beside everything that it is judged by.
pub(crate) struct Judge<'a> {
    pub(crate) call: Proposed<'a>,
    pub(crate) material: &'a Material,
    pub(crate) variables: Variables<'a>,
    pub(crate) seen: &'a Label,
}

impl Judge<'_> {
    fn argument(&self, name: &str, value: &Value, out: &mut Vec<ArgumentFacts>) {
        let sink = self.call.classification.sinks.get(name).copied();
        if is_absent(value) {
            return;
        }
        if sink == Some(SinkKind::Content) {
            out.push(self.content(name, value));
            if self.is_consequential() && holds(Check::LinksInContent) {
                self.links(name, value, out);
            }
            return;
        }
        let mut trace = if is_chosen_from_a_list(self.call.schema, name, value) {
            Trace { provenance: Provenance::ToolTrusted, source: None, sentence: None }
        } else {
            self.worst(name, value)
        };
        // That a store assigned a value says nothing for using it as a password or running it.
        let opens = matches!(sink, Some(SinkKind::Credential | SinkKind::Command));
        if holds(Check::HandlesOpenNothing)
            && opens
            && trace.provenance > Provenance::Trusted
            && trace.provenance < Provenance::Invented
        {
            trace.provenance = Provenance::Untrusted;
        }
        out.push(ArgumentFacts {
            label: self.label(name, trace.provenance),
            value: Some(shown(sink, value)),
            name: name.to_owned(),
            sink,
            provenance: trace.provenance,
            source: trace.source,
            sentence: trace.sentence,
        });
        // An argument that nobody said anything about reaches the server all the same, and whoever reads it there; and a server that is given an address may go there.
        if holds(Check::LinksInUnclassified) && sink.is_none() && self.call.destination.is_some() {
            self.links(name, value, out);
        }
    }

    /// The trace of the least trusted part of a value.
    fn worst(&self, name: &str, value: &Value) -> Trace {
        if self.call.classification.sinks.get(name) == Some(&SinkKind::Command)
            && let Some(words) = command(value)
        {
            // Words that the user wrote here and there are not the command that they make together.
            return self.material.trace_command(&words);
        }
        let is_path = self.call.classification.sinks.get(name) == Some(&SinkKind::Path);
        let Some(parts) = parts(value) else {
            // What was not looked at may be anything.
            return Trace { provenance: Provenance::Untrusted, source: None, sentence: None };
        };
        let mut worst: Option<Trace> = None;
        for part in parts {
            let trace = match part {
                Part::Key(_) if !holds(Check::KeysAreValues) => continue,
                Part::Key(key) if self.is_own_key(key) => continue,
                Part::Key(key) => self.material.trace(key, self.call.server),
                Part::Value(value) => {
                    let Some(text) = scalar(value) else { continue };
                    let mut trace = if is_path {
                        self.material.trace_path(&text)
                    } else {
                        self.material.trace(&text, self.call.server)
                    };
                    if let Some(reading) = self.referenced(name, value)
                        && trace.provenance > Provenance::Pointed
                    {
                        trace.provenance = Provenance::Variable;
                        trace.source = Some(reading.described());
                    }
                    trace
                }
            };
            if worst.as_ref().is_none_or(|known| trace.provenance > known.provenance) {
                worst = Some(trace);
            }
        }
        worst.unwrap_or(Trace { provenance: Provenance::Invented, source: None, sentence: None })
    }

    /// Whether the effect matters outside the run.
    pub(crate) fn is_consequential(&self) -> bool {
        self.call.classification.consequence == Consequence::Consequential
    }

    /// The mandate that covers the call, if its effect needs one.
    fn coverage(&self, members: &serde_json::Map<String, Value>, mandates: &Mandates) -> Option<Coverage> {
        let planner = Planner::of(self.variables.0, self.seen);
        let present = members.iter().filter(|(_, value)| !is_absent(value));
        let covered: Vec<Covered<'_>> = present
            .map(|(name, value)| Covered {
                name,
                role: self.role(name, value),
                value,
                provenance: self.worst(name, value).provenance,
            })
            .collect();
        self.is_consequential().then(|| coverage(mandates, self.call.tool, &covered, planner, self))
    }

    /// What an argument does. The arguments of Palyra's own tools are all known; of anybody else's, those are targets that nobody reviewed.
    fn role(&self, name: &str, value: &Value) -> Role {
        let sink = self.call.classification.sinks.get(name).copied();
        let is_palyras_own = !matches!(self.call.destination, Some(DataOrigin::Server(_) | DataOrigin::Skill(_)));
        let closed = is_chosen_from_a_list(self.call.schema, name, value);
        match Role::of(sink, closed) {
            Role::Target | Role::Choice if sink.is_none() && is_palyras_own => Role::Content,
            role => role,
        }
    }

    /// What a mandate binds is what the user wanted, whatever else it is.
    fn bind(
        &self,
        spent: Option<&Spent>,
        mandates: &Mandates,
        members: &serde_json::Map<String, Value>,
        arguments: &mut [ArgumentFacts],
    ) {
        let tainted = self.seen.integrity == Integrity::Untrusted;
        let used = spent.and_then(|spent| mandates.all().get(spent.mandate));
        let reads = !self.is_consequential();
        let is_listed = |argument: &ArgumentFacts| {
            let of_tool = mandates.all().iter().filter(|standing| standing.mandate.tool == self.call.tool);
            used.into_iter().chain(of_tool.filter(|_| reads)).any(|standing| {
                match (standing.mandate.arguments.get(&argument.name), members.get(&argument.name)) {
                    (Some(Bound::Each(each)), Some(value)) => scalar(value).is_some_and(|text| {
                        self.material.is_listed_by(&each.each, &text, self.call.server)
                            || reads && self.material.is_pointed_at_by(&each.each, &text)
                    }),
                    _ => false,
                }
            })
        };
        for argument in arguments.iter_mut() {
            let steers = matches!(argument.sink, Some(SinkKind::Destination | SinkKind::Path | SinkKind::Credential));
            if steers && is_listed(argument) {
                argument.provenance = Provenance::ToolTrusted;
                argument.label.integrity = Integrity::ToolTrusted;
            } else if tainted && argument.provenance == Provenance::Pointed {
                // Which of the addresses that others wrote is read can tell what the planner has seen.
                argument.provenance = Provenance::Untrusted;
                argument.label.integrity = Integrity::Untrusted;
            }
        }
    }

    /// The reading that a value of this argument was taken from by reference.
    pub(crate) fn referenced(&self, name: &str, value: &Value) -> Option<&Reading> {
        self.call
            .references
            .iter()
            .filter(|reference| reference.argument == name)
            .filter(|reference| {
                let whole = self.variables.value(reference.variable, &reference.path);
                whole.is_some_and(|whole| leaves(&whole, &[]).iter().any(|leaf| leaf.value == value))
            })
            .find_map(|reference| self.variables.reading(reference.variable))
    }

    /// Content may come from anywhere; what matters is how confidential it can be. What the planner writes in its own words can carry all that
    /// it has seen; what the user wrote word for word, the user wants sent.
    fn content(&self, name: &str, value: &Value) -> ArgumentFacts {
        let trace = self.worst(name, value);
        let taken = self.call.references.iter().filter(|reference| reference.argument == name);
        let label = taken
            .filter_map(|reference| self.variables.reading(reference.variable))
            .fold(self.label(name, trace.provenance), |joined, reading| joined.join(&reading.label));
        ArgumentFacts {
            name: name.to_owned(),
            sink: Some(SinkKind::Content),
            provenance: trace.provenance,
            label,
            value: None,
            source: trace.source,
            sentence: trace.sentence,
        }
    }

    /// Addresses inside content lead whoever reads it somewhere, so they are destinations. The words of a planner that has read nothing of others are
    /// mostly file names where they have the shape of a host; a tainted one may have put together a name that stands nowhere.
    fn links(&self, name: &str, value: &Value, out: &mut Vec<ArgumentFacts>) {
        let mut count = 0;
        let may_invent_hosts = self.seen.integrity == Integrity::Untrusted && holds(Check::HostsOfTaintedPlanners);
        let texts = parts(value).unwrap_or_default().into_iter().filter_map(|part| match part {
            Part::Key(key) => Some(key),
            Part::Value(value) => value.as_str(),
        });
        for text in texts {
            for (link, kind) in links::links(text) {
                let trace = self.material.trace(&link, self.call.server);
                // As a whole argument even the shape of a host is an address.
                let is_whole = text.trim() == link && !self.call.classification.sinks.contains_key(name);
                let invented = trace.provenance == Provenance::Invented;
                let leads_nowhere = match kind {
                    LinkKind::Explicit => false,
                    LinkKind::BareHost => invented && !may_invent_hosts && !is_whole,
                    LinkKind::FileName => !is_whole,
                };
                let harmless = trace.provenance <= Provenance::Pointed || leads_nowhere;
                if harmless {
                    continue;
                }
                count += 1;
                out.push(ArgumentFacts {
                    name: format!("{name}#{count}"),
                    sink: Some(SinkKind::Destination),
                    label: self.label(name, trace.provenance),
                    provenance: trace.provenance,
                    value: Some(link),
                    source: trace.source,
                    sentence: trace.sentence,
                });
            }
            let carried = if holds(Check::CarriedAddresses) { self.material.carried(text) } else { Vec::new() };
            for (link, trace) in carried {
                if out
                    .iter()
                    .any(|known| known.value.as_deref().is_some_and(|value| value.to_lowercase().contains(&link)))
                {
                    continue;
                }
                count += 1;
                out.push(ArgumentFacts {
                    name: format!("{name}#{count}"),
                    sink: Some(SinkKind::Destination),
                    label: self.label(name, trace.provenance),
                    provenance: trace.provenance,
                    value: Some(link),
                    source: trace.source,
                    sentence: trace.sentence,
                });
            }
        }
    }

    /// The label that follows from where a value comes from.
    fn label(&self, name: &str, provenance: Provenance) -> Label {
        let written = |integrity| Label::new(integrity, Confidentiality::Public);
        match provenance {
            Provenance::Trusted => written(Integrity::User),
            Provenance::ToolTrusted | Provenance::Pointed => {
                Label::new(Integrity::ToolTrusted, self.seen.confidentiality)
            }
            Provenance::Variable => self
                .call
                .references
                .iter()
                .filter(|reference| reference.argument == name)
                .filter_map(|reference| self.reference_label(reference))
                .fold(Label::new(Integrity::ToolTrusted, Confidentiality::Public), |joined, label| joined.join(&label)),
            Provenance::Invented => self.seen.clone(),
            Provenance::Untrusted => {
                let mut label = self.seen.clone();
                label.integrity = Integrity::Untrusted;
                label
            }
        }
    }

    fn reference_label(&self, reference: &Reference) -> Option<Label> {
        let reading = self.variables.reading(reference.variable)?;
        let all = reading.data.as_ref().map(|data| leaves(data, &reading.class.fields)).unwrap_or_default();
        let label = all.iter().find(|leaf| leaf.path == reference.path).map(|leaf| leaf_label(leaf, &reading.label));
        Some(label.unwrap_or_else(|| reading.label.clone()))
    }

    /// How confidential content may be where this call goes. A place the user named may get what is the user's own; a place inside a server
    /// that nobody but the model chose may get back what came from that server, and otherwise nothing private.
    fn clearance(&self, destinations: Option<Provenance>, readings: &[Reading]) -> Confidentiality {
        match destinations {
            None | Some(Provenance::Trusted) => Confidentiality::Private,
            Some(Provenance::ToolTrusted) if !self.holds_foreign_private_data(readings) => Confidentiality::Private,
            Some(Provenance::ToolTrusted) => Confidentiality::Internal,
            Some(_) => Confidentiality::Public,
        }
    }

    /// Also what was only previewed counts: its numbers and lengths are in the planner's context.
    fn holds_foreign_private_data(&self, readings: &[Reading]) -> bool {
        readings.iter().any(|reading| {
            reading.label.confidentiality >= Confidentiality::Private && reading.server.as_deref() != self.call.server
        })
    }

    /// The user named the place if every text of the arguments, and at least one, is the user's own word. What a planner asks for that anybody may be speaking through, nobody named.
    fn source_naming(&self, members: &serde_json::Map<String, Value>) -> SourceNaming {
        if Planner::of(self.variables.0, self.seen) == Planner::Tainted && holds(Check::ListingsBeforeReading) {
            return SourceNaming::ChosenOtherwise;
        }
        let Some(parts) = members.values().map(parts).collect::<Option<Vec<_>>>() else {
            return SourceNaming::ChosenOtherwise;
        };
        let texts: Vec<&str> = parts
            .into_iter()
            .flatten()
            .filter_map(|part| match part {
                Part::Key(key) => (!self.is_own_key(key)).then_some(key),
                Part::Value(value) => value.as_str(),
            })
            .filter(|text| !text.is_empty())
            .collect();
        let named = |text: &&str| self.material.trace(text, None).provenance == Provenance::Trusted;
        match texts.is_empty() {
            true => SourceNaming::Everything,
            false if texts.iter().all(named) => SourceNaming::NamedByUser,
            false => SourceNaming::ChosenOtherwise,
        }
    }
}

fn is_absent(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A value as one text: itself, a list of texts as one command line if it is a command, or canonical JSON for what has parts.
fn shown(sink: Option<SinkKind>, value: &Value) -> String {
    let words = if sink == Some(SinkKind::Command) { command(value) } else { None };
    words.map(command_line).or_else(|| scalar(value)).unwrap_or_else(|| value.to_string())
}

/// A program with its arguments.
fn command(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

#[cfg(test)]
#[path = "assess_tests.rs"]
mod tests;
