//! What is allowed but probably not meant.
//!
//! A finding never changes a decision. Whoever calls may give the names that exist (tools, agents, hosts, …); an entity that a policy
//! names and that does not exist is then pointed out, because a rule about it never applies.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{
    ActionConstraint, Effect, Policy, PolicyId, PrincipalConstraint, ResourceConstraint, ValidationMode,
    ValidationWarning,
};
use palyra_common::runtime_contract_enum;
use serde::Serialize;
use serde_json::Value;

use crate::compile::REACH;
use crate::deep_stack::on_deep_stack;
use crate::error::one_line;
use crate::names::Names;
use crate::reasons::{Reader, unknown_placeholders};
use crate::{Approval, Place, PolicyEntry, PolicyError, PolicySet};

runtime_contract_enum! {
    /// What a finding is about.
    pub enum LintRule("policy_lint_rule") {
        /// A permit for everybody, everything and anything.
        OverBroadPermit = "over_broad_permit",
        /// A policy that does not say why.
        MissingReason = "missing_reason",
        /// `@approval` on a forbid, where it does nothing.
        ApprovalOnForbid = "approval_on_forbid",
        /// A permit that stands above the guards without any condition.
        UnconditionalWaiver = "unconditional_waiver",
        /// A permit that looks at signals of injection.
        PermitBySignals = "permit_by_signals",
        /// A policy that can never apply.
        NeverApplies = "never_applies",
        /// An entity that does not exist.
        UnusedEntity = "unused_entity",
        /// A template that no grant uses.
        UnusedTemplate = "unused_template",
        /// A placeholder that stays as it is.
        UnknownPlaceholder = "unknown_placeholder",
        /// Text that looks like something else.
        DeceptiveText = "deceptive_text",
    }
}

/// Something that is probably not meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub rule: LintRule,
    /// The policy.
    pub policy: String,
    /// Where it stands.
    pub at: Place,
    /// What is wrong, for a person.
    pub message: String,
}

/// The names that exist, per entity type: `"Tool"` to the names of all tools. A type that is missing is not checked.
pub type KnownEntities = BTreeMap<String, BTreeSet<String>>;

/// Looks at every policy of a set.
///
/// # Errors
/// Only if the embedded schema is broken.
pub fn lint(set: &PolicySet, known: &KnownEntities) -> Result<Vec<Finding>, PolicyError> {
    on_deep_stack(|| look(set, known))
}

fn look(set: &PolicySet, known: &KnownEntities) -> Result<Vec<Finding>, PolicyError> {
    let mut findings = Vec::new();
    for entry in set.entries.values().chain(set.templates.values()) {
        annotations(entry, &mut findings);
    }
    for policy in set.cedar.policies() {
        let Some(entry) = set.entries.get::<str>(policy.id().as_ref()) else { continue };
        let open = policy.principal_constraint() == PrincipalConstraint::Any
            && policy.resource_constraint() == ResourceConstraint::Any;
        if policy.effect() == Effect::Permit && open && !policy.has_non_scope_constraint() {
            if policy.action_constraint() == ActionConstraint::Any {
                let message = "permits every principal every action on every resource";
                findings.push(finding(LintRule::OverBroadPermit, entry, message));
            }
            if matches!(entry.annotations.approval, Some(Approval::Waived | Approval::Agreed)) {
                let message = "waives every approval for everyone, unconditionally";
                findings.push(finding(LintRule::UnconditionalWaiver, entry, message));
            }
        }
        if policy.effect() == Effect::Permit && looks_at_signals(policy) {
            let message =
                "permits based on injection signals, which an attacker can evade; use them in a forbid or a guard";
            findings.push(finding(LintRule::PermitBySignals, entry, message));
        }
        for literal in policy.entity_literals() {
            let id: &str = literal.id().as_ref();
            let Some(names) = known.get(&literal.type_name().to_string()) else { continue };
            if !names.contains(id) {
                let near = names.iter().find(|name| strsim::damerau_levenshtein(name, id) <= 2);
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                findings.push(finding(LintRule::UnusedEntity, entry, &format!("`{literal}` does not exist{hint}")));
            }
        }
    }
    for (id, entry) in &set.templates {
        let links = set.cedar.get_linked_policies(PolicyId::new(id)).map_or(0, Iterator::count);
        let shipped = crate::SHIPPED_POLICIES.iter().any(|file| file.name == entry.at.file);
        if links == 0 && !shipped {
            findings.push(finding(LintRule::UnusedTemplate, entry, "no grant uses this template"));
        }
    }
    warnings(set, &mut findings)?;
    findings.sort_by(|left, right| (&left.at, &left.policy, left.rule).cmp(&(&right.at, &right.policy, right.rule)));
    // The validator has two words for a policy that cannot apply; one finding says it.
    findings.dedup_by(|later, earlier| {
        later.rule == LintRule::NeverApplies && (later.rule, &later.policy) == (earlier.rule, &earlier.policy)
    });
    Ok(findings)
}

/// A policy whose form cannot be looked at counts as one that does not: the linter only advises.
fn looks_at_signals(policy: &Policy) -> bool {
    policy.to_json().is_ok_and(|json| reads_attribute(&json, "signals"))
}

fn reads_attribute(json: &Value, name: &str) -> bool {
    match json {
        Value::Object(fields) => {
            let reads = fields.get("attr").and_then(Value::as_str) == Some(name);
            reads || fields.values().any(|inner| reads_attribute(inner, name))
        }
        Value::Array(items) => items.iter().any(|inner| reads_attribute(inner, name)),
        _ => false,
    }
}

fn finding(rule: LintRule, entry: &PolicyEntry, message: &str) -> Finding {
    Finding { rule, policy: entry.id.clone(), at: entry.at.clone(), message: message.to_owned() }
}

fn annotations(entry: &PolicyEntry, findings: &mut Vec<Finding>) {
    let annotations = &entry.annotations;
    let reasons = [
        ("@reason_person", Reader::Person, &annotations.reason_person),
        ("@reason_model", Reader::Model, &annotations.reason_model),
    ];
    for (name, reader, reason) in reasons {
        match reason {
            None => findings.push(finding(LintRule::MissingReason, entry, &format!("has no `{name}`"))),
            Some(text) => findings.extend(unknown_placeholders(text, reader).into_iter().map(|placeholder| {
                finding(LintRule::UnknownPlaceholder, entry, &format!("`{name}` has no value for `{{{placeholder}}}`"))
            })),
        }
    }
    if annotations.role == crate::Role::Forbid && annotations.approval.is_some() {
        let message = "`@approval` has no effect on a forbid; `@guard(\"approval\")` forbids unless a person approves";
        findings.push(finding(LintRule::ApprovalOnForbid, entry, message));
    }
}

/// What Cedar's validator finds odd.
fn warnings(set: &PolicySet, findings: &mut Vec<Finding>) -> Result<(), PolicyError> {
    let result = Names::get()?.validator.validate_with_level(&set.cedar, ValidationMode::Strict, REACH);
    for warning in result.validation_warnings() {
        let id: &str = warning.policy_id().as_ref();
        let Some(entry) = set.entries.get(id).or_else(|| set.templates.get(id)) else { continue };
        let rule = match warning {
            ValidationWarning::ImpossiblePolicy(_) | ValidationWarning::InvalidActionApplication(_) => {
                LintRule::NeverApplies
            }
            _ => LintRule::DeceptiveText,
        };
        findings.push(finding(rule, entry, &one_line(&warning.to_string())));
    }
    Ok(())
}
