//! What holds for every request that Palyra makes, beyond its types.
//!
//! The schema cannot say that a rank belongs to its word: to the solver `Integrity::"user"` with rank 77 is a request like any other.
//! These facts are assumed about both sets. They follow from how requests are built, and a test decides real requests against them.

use std::collections::BTreeSet;

use cedar_policy::{EntityId, EntityTypeName, EntityUid, Policy};
use palyra_common::{Confidentiality, ContractEnum, Integrity, PrincipalRole, Provenance, Risk, SinkKind, TokenScope};
use palyra_policy::{ActionKind, SignalConfidence};
use serde_json::Value;

use crate::ProveError;
use crate::formula::Part;

/// The facts for an action on a resource that these policies could need, as an expression in Cedar's JSON form. A fact about something
/// that no policy mentions says nothing, and costs the solver much.
pub(crate) fn facts<'a>(
    action: ActionKind,
    resource: &str,
    policies: impl Iterator<Item = &'a Part>,
) -> Result<Value, ProveError> {
    let (mut words, mut literals) = (BTreeSet::new(), BTreeSet::new());
    policies.for_each(|part| mentioned(&part.json, &mut words, &mut literals));
    let is_used = |name: &str| words.contains(name);
    let mut known = vec!["context.now >= 0".to_owned()];
    let is_command =
        matches!(action, ActionKind::CommandRead | ActionKind::CommandChange | ActionKind::CommandAdminister);
    if is_command {
        known.extend(command_facts(resource, &words, &literals));
        return expression(&known);
    }
    if is_used("risk_rank") {
        known.push(ranked::<Risk>("context.risk", "context.risk_rank", "Risk"));
    }
    if action != ActionKind::DecideApproval {
        if is_used("labels") && is_used("integrity_rank") {
            known.push(ranked::<Integrity>("context.labels.integrity", "context.labels.integrity_rank", "Integrity"));
        }
        if is_used("labels") && is_used("confidentiality_rank") {
            let (word, rank) = ("context.labels.confidentiality", "context.labels.confidentiality_rank");
            known.push(ranked::<Confidentiality>(word, rank, "Confidentiality"));
        }
        if is_used("uncleared") {
            known.push("context.cleared == context.uncleared.isEmpty()".to_owned());
        }
        if is_used("signals") && is_used("confidence_rank") {
            known.push(bounded::<SignalConfidence>("context.signals.confidence_rank"));
            // A kind that was noticed weighs something.
            known.push("context.signals.kinds.isEmpty() || context.signals.confidence_rank > 0".to_owned());
        }
        for kind in SinkKind::ALL.iter().filter(|kind| is_used(kind.as_str())) {
            let sink = format!("context.sinks.{kind}");
            let mut inside = Vec::new();
            if is_used("provenance_rank") {
                let (word, rank) = (format!("{sink}.provenance"), format!("{sink}.provenance_rank"));
                inside.push(ranked::<Provenance>(&word, &rank, "Provenance"));
            }
            inside.push(bounded::<Integrity>(&format!("{sink}.integrity_rank")));
            inside.push(bounded::<Confidentiality>(&format!("{sink}.confidentiality_rank")));
            known.push(format!("if context.sinks has {kind} then {} else true", joined(&inside)));
        }
    }
    // A run has one owner, one agent and one session, and a tool at most one server or skill: being in one is being its.
    let runs = if action == ActionKind::DecideApproval { "resource" } else { "principal" };
    let has_run = runs == "principal" || resource == "Run";
    for (kind, id) in &literals {
        let literal = format!("{kind}::{id}");
        match kind.as_str() {
            "User" | "Agent" | "Session" if has_run => {
                let part = if kind == "User" { "owner".to_owned() } else { kind.to_ascii_lowercase() };
                known.push(format!("(if {runs} in {literal} then {runs}.{part} == {literal} else true)"));
                known.push(format!("(if {runs}.{part} == {literal} then {runs} in {literal} else true)"));
            }
            "Server" | "Skill" if resource == "Tool" => {
                let part = kind.to_ascii_lowercase();
                let offered = format!("resource has {part} && resource.{part} == {literal}");
                known.push(format!("(if resource in {literal} then {offered} else true)"));
                known.push(format!("(if {offered} then resource in {literal} else true)"));
            }
            _ => {}
        }
    }
    if resource == "Tool" {
        known.push("context.tool == resource".to_owned());
        known.push("(if resource has server then !(resource has skill) else true)".to_owned());
    }
    let receives = ["Tool", "Host", "Path", "Channel", "Worker", "Memory"].contains(&resource);
    if receives && is_used("clearance") {
        known.push(bounded::<Confidentiality>("resource.clearance"));
    }
    expression(&known)
}

/// What holds for commands: closed vocabularies, and whose things are whose.
fn command_facts(resource: &str, words: &BTreeSet<String>, literals: &BTreeSet<(String, String)>) -> Vec<String> {
    let mut known = Vec::new();
    if words.contains("role") {
        known.push(format!("[{}].contains(context.role)", quoted::<PrincipalRole>()));
    }
    if words.contains("scope") {
        known.push(format!("[{}].contains(context.scope)", quoted::<TokenScope>()));
    }
    if words.contains("scopes") {
        known.push(format!("[{}].containsAll(context.scopes)", quoted::<TokenScope>()));
    }
    if resource == "Daemon" {
        known.push("context.own".to_owned());
        return known;
    }
    known.push("context.own == (principal in resource.owner)".to_owned());
    // A conversation is called as its owner.
    for (_, id) in literals.iter().filter(|(kind, _)| kind == "Conversation" || kind == "User") {
        let (this, whose) = (format!("resource == Conversation::{id}"), format!("resource.owner == User::{id}"));
        known.push(format!("(if {this} then {whose} else true)"));
        known.push(format!("(if {whose} then {this} else true)"));
    }
    known
}

fn quoted<Word: ContractEnum>() -> String {
    Word::ALL.iter().map(|word| format!("\"{}\"", word.as_str())).collect::<Vec<_>>().join(", ")
}

fn expression(known: &[String]) -> Result<Value, ProveError> {
    let text = format!("permit (principal, action, resource) when {{ {} }};", joined(known));
    let policy = Policy::parse(None, text).map_err(ProveError::not_analysable)?;
    let mut json = policy.to_json().map_err(ProveError::not_analysable)?;
    let body = json.pointer_mut("/conditions/0/body").map(Value::take);
    body.ok_or_else(|| ProveError::not_analysable("the facts have no body"))
}

/// Names of attributes that an expression reads, and the entities it names with their ids as Cedar writes them.
fn mentioned(value: &Value, words: &mut BTreeSet<String>, literals: &mut BTreeSet<(String, String)>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(name)) = fields.get("attr") {
                words.insert(name.clone());
            }
            if let (Some(Value::String(kind)), Some(Value::String(id)), 2) =
                (fields.get("type"), fields.get("id"), fields.len())
                && let Ok(kind_name) = kind.parse::<EntityTypeName>()
            {
                // Cedar itself writes the literal, so an id can be no more than an id.
                let uid = EntityUid::from_type_name_and_id(kind_name, EntityId::new(id));
                let text = uid.to_string();
                literals.insert((kind.clone(), text.strip_prefix(&format!("{kind}::")).unwrap_or("\"\"").to_owned()));
            }
            fields.values().for_each(|inner| mentioned(inner, words, literals));
        }
        Value::Array(items) => items.iter().for_each(|inner| mentioned(inner, words, literals)),
        _ => {}
    }
}

fn joined(parts: &[String]) -> String {
    parts.iter().map(|part| format!("({part})")).collect::<Vec<_>>().join(" && ")
}

/// A word has its rank and no other.
fn ranked<Word: ContractEnum>(word: &str, rank: &str, kind: &str) -> String {
    let each = Word::ALL
        .iter()
        .enumerate()
        .map(|(n, value)| format!("({word} == {kind}::\"{}\" && {rank} == {n})", value.as_str()));
    each.collect::<Vec<_>>().join(" || ")
}

fn bounded<Word: ContractEnum>(rank: &str) -> String {
    format!("{rank} >= 0 && {rank} < {}", Word::ALL.len())
}
