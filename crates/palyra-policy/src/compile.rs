//! One text of policies to named, validated Cedar policies.
//!
//! Each file is validated on its own, because a complaint can then name the line; the set as a whole is validated again once grants
//! are linked.

use std::str::FromStr;

use cedar_policy::{Effect, Policy, PolicyId, PolicySet as CedarSet, Template, ValidationError, ValidationMode};
use miette::Diagnostic;

use crate::annotations::{Annotations, is_plain};
use crate::complexity;
use crate::error::one_line;
use crate::names::Names;
use crate::source::MAX_POLICIES;
use crate::{Place, PolicyEntry, PolicyError, PolicySource};

/// How many steps from the request a policy may look. Entities further away are not given to the evaluator.
pub(crate) const REACH: u32 = 1;

/// A policy or template with what Palyra knows about it. Cheap to clone: the syntax tree is shared.
#[derive(Debug, Clone)]
pub(crate) enum Compiled {
    Policy(Policy, PolicyEntry),
    Template(Template, PolicyEntry),
}

pub(crate) fn compile(names: &Names, source: &PolicySource) -> Result<Vec<Compiled>, PolicyError> {
    let PolicySource { file, stem, text } = source;
    if !is_plain(stem) {
        let at = Place { file: file.clone(), line: 1 };
        let reason =
            format!("`{stem}` cannot be part of an id: use lower-case letters, digits, `_` and `-` in the file name");
        return Err(PolicyError::BadId { at, reason });
    }
    complexity::check(source)?;
    let parsed = CedarSet::from_str(text).map_err(|errors| syntax(file, text, &errors))?;
    // Counted before they are validated, which takes far longer than parsing.
    if parsed.num_of_policies() + parsed.num_of_templates() > MAX_POLICIES {
        return Err(PolicyError::SetTooLarge { limit: MAX_POLICIES as u64, unit: "policies" });
    }
    let mut compiled = Vec::with_capacity(parsed.num_of_policies() + parsed.num_of_templates());
    let mut named = CedarSet::new();
    for policy in parsed.policies() {
        let entry = entry(source, policy.effect(), &policy.to_string(), policy.annotations())?;
        let policy = policy.new_id(PolicyId::new(&entry.id));
        named.add(policy.clone()).map_err(|_| duplicate(&entry, &compiled))?;
        compiled.push(Compiled::Policy(policy, entry));
    }
    for template in parsed.templates() {
        let entry = entry(source, template.effect(), &template.to_string(), template.annotations())?;
        let template = template.new_id(PolicyId::new(&entry.id));
        named.add_template(template.clone()).map_err(|_| duplicate(&entry, &compiled))?;
        compiled.push(Compiled::Template(template, entry));
    }
    let result = names.validator.validate_with_level(&named, ValidationMode::Strict, REACH);
    let mut complaints: Vec<PolicyError> =
        result.validation_errors().map(|error| invalid(Place::of(file, text, error), error)).collect();
    complaints.sort_by(|left, right| left.place().cmp(&right.place()));
    match complaints.into_iter().next() {
        Some(first) => Err(first),
        None => Ok(compiled),
    }
}

fn entry<'a>(
    source: &PolicySource,
    effect: Effect,
    text: &str,
    annotations: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<PolicyEntry, PolicyError> {
    // Cedar keeps the text of each policy as it stands in the file, so the place is found by looking for it.
    let at = Place::at_offset(&source.file, &source.text, source.text.find(text).unwrap_or_default());
    let annotations = Annotations::read(effect, &at, annotations)?;
    Ok(PolicyEntry {
        id: format!("{}.{}", source.stem, annotations.name),
        at,
        text: text.to_owned(),
        annotations,
        template: None,
    })
}

fn duplicate(second: &PolicyEntry, earlier: &[Compiled]) -> PolicyError {
    let first = earlier
        .iter()
        .map(|compiled| match compiled {
            Compiled::Policy(_, entry) | Compiled::Template(_, entry) => entry,
        })
        .find(|entry| entry.id == second.id)
        .map_or_else(|| second.at.clone(), |entry| entry.at.clone());
    PolicyError::DuplicateId { id: second.id.clone(), at: second.at.clone(), first }
}

fn syntax(file: &str, text: &str, errors: &cedar_policy::ParseErrors) -> PolicyError {
    let at = Place::of(file, text, errors);
    let line = text.lines().nth(at.line.saturating_sub(1)).unwrap_or_default().trim_start();
    if ["include", "#include", "import"].iter().any(|word| line.starts_with(word)) {
        return PolicyError::Include { at };
    }
    let mut reason = one_line(&errors.to_string());
    if let Some(help) = errors.help() {
        reason = format!("{reason} ({})", one_line(&help.to_string()));
    }
    PolicyError::Malformed { at, reason }
}

pub(crate) fn invalid(at: Place, error: &ValidationError) -> PolicyError {
    let mut reason = one_line(&error.to_string());
    if let Some(help) = error.help() {
        reason = format!("{reason} ({})", one_line(&help.to_string()));
    }
    match error {
        ValidationError::UnrecognizedEntityType(_)
        | ValidationError::UnrecognizedActionId(_)
        | ValidationError::InvalidEnumEntity(_) => PolicyError::UnknownEntity { at, reason },
        _ => PolicyError::Invalid { at, reason },
    }
}
