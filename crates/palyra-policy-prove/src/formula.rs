//! A whole policy set as one Cedar policy.
//!
//! What a set decides is made of several questions (rules, guards, what people agreed to). Here they become one condition over the
//! request, so that two sets can be compared by comparing two policies:
//!
//! - `may`: some permit applies and no forbid does.
//! - `unasked`: the same, and either a permit that waives questions applies, or a person agreed and nothing asks but what they answered, or nothing asks at all.
//!
//! Policies are taken in Cedar's JSON form. Their action is left out: only those that concern the action are given.

use std::collections::BTreeSet;

use cedar_policy::{Policy, PolicyId};
use palyra_policy::{PolicyEntry, Role};
use serde_json::{Value, json};

use crate::ProveError;

/// Both questions about one set, for one action.
#[derive(Debug)]
pub(crate) struct Formulas {
    pub(crate) may: Policy,
    pub(crate) unasked: Policy,
}

/// One policy of a set, as its part in the decision and its JSON form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) id: String,
    pub(crate) role: Role,
    pub(crate) json: Value,
    /// The policies whose questions it answers, if it is what a person agreed to.
    pub(crate) answers: BTreeSet<String>,
}

impl Part {
    pub(crate) fn new(entry: &PolicyEntry, policy: &Policy) -> Result<Self, ProveError> {
        let json = policy.to_json().map_err(ProveError::not_analysable)?;
        let (role, answers) = (entry.annotations.role, entry.annotations.answers.clone());
        Ok(Self { id: entry.id.clone(), role, json, answers })
    }

    /// Whether it asks a person.
    pub(crate) fn asks(&self) -> bool {
        matches!(self.role, Role::Guard | Role::PermitIfApproved)
    }

    /// Whether two parts always decide alike: reasons and notes do not decide.
    pub(crate) fn same_meaning(&self, other: &Self) -> bool {
        let decisive = |part: &Self| {
            let fields = ["effect", "principal", "action", "resource", "conditions"];
            (part.role, part.answers.clone(), fields.map(|field| part.json.get(field).cloned()))
        };
        decisive(self) == decisive(other)
    }

    /// Whether it computes with numbers: the one way a validated policy can fail.
    pub(crate) fn computes(&self) -> bool {
        self.json.get("conditions").is_some_and(has_arithmetic)
    }
}

/// Builds the formulas of a set; `facts` holds for every request and is assumed.
pub(crate) fn formulas(parts: &[Part], facts: &Value) -> Result<Formulas, ProveError> {
    let any_of = |roles: &[Role]| -> Result<Value, ProveError> {
        let chosen = parts.iter().filter(|part| roles.contains(&part.role));
        Ok(any(chosen.map(|part| condition(&part.json)).collect::<Result<Vec<_>, _>>()?))
    };
    let permitted = any_of(&[Role::Permit, Role::PermitIfApproved, Role::PermitUnasked])?;
    let may = and(permitted, not(any_of(&[Role::Forbid])?));
    let mut answered = vec![any_of(&[Role::PermitUnasked])?, not(asked_beside(parts, &BTreeSet::new())?)];
    // Patterns that answer the same are together, so that what asks besides is written once.
    let agreed = || parts.iter().filter(|part| part.role == Role::Agreed);
    for answers in agreed().map(|part| &part.answers).collect::<BTreeSet<_>>() {
        let alike = agreed().filter(|part| part.answers == *answers);
        let applies = any(alike.map(|part| condition(&part.json)).collect::<Result<Vec<_>, _>>()?);
        answered.push(and(applies, not(asked_beside(parts, answers)?)));
    }
    let unasked = and(may.clone(), any(answered));
    Ok(Formulas { may: policy("may", &[facts.clone(), may])?, unasked: policy("unasked", &[facts.clone(), unasked])? })
}

/// Whether a policy asks that is none of these.
fn asked_beside(parts: &[Part], answers: &BTreeSet<String>) -> Result<Value, ProveError> {
    let others = parts.iter().filter(|part| part.asks() && !answers.contains(&part.id));
    Ok(any(others.map(|part| condition(&part.json)).collect::<Result<Vec<_>, _>>()?))
}

fn policy(id: &str, conditions: &[Value]) -> Result<Policy, ProveError> {
    let conditions: Vec<Value> = conditions.iter().map(|body| json!({ "kind": "when", "body": body })).collect();
    let all = json!({ "op": "All" });
    let json =
        json!({ "effect": "permit", "principal": all, "action": all, "resource": all, "conditions": conditions });
    Policy::from_json(Some(PolicyId::new(id)), json).map_err(ProveError::not_analysable)
}

/// When a policy applies, apart from its action.
fn condition(policy: &Value) -> Result<Value, ProveError> {
    let mut whole = and(scope("principal", policy)?, scope("resource", policy)?);
    for clause in policy.get("conditions").and_then(Value::as_array).into_iter().flatten() {
        let body = clause.get("body").cloned().ok_or_else(|| odd("a condition without a body"))?;
        let holds = match clause.get("kind").and_then(Value::as_str) {
            Some("when") => body,
            Some("unless") => not(body),
            _ => return Err(odd("a condition of an unknown kind")),
        };
        whole = and(whole, holds);
    }
    Ok(whole)
}

/// The constraint on the principal or the resource as an expression.
fn scope(variable: &str, policy: &Value) -> Result<Value, ProveError> {
    let constraint = policy.get(variable).ok_or_else(|| odd("a policy without a scope"))?;
    let of = json!({ "Var": variable });
    let entity = |from: &Value| {
        let entity = from.get("entity").ok_or_else(|| odd("a slot that is not filled in"))?;
        // A slot that a grant filled in is written with the escape already.
        let entity = entity.get("__entity").unwrap_or(entity);
        Ok::<Value, ProveError>(json!({ "Value": { "__entity": entity } }))
    };
    match constraint.get("op").and_then(Value::as_str) {
        Some("All") => Ok(json!({ "Value": true })),
        Some("==") => Ok(json!({ "==": { "left": of, "right": entity(constraint)? } })),
        Some("in") => Ok(json!({ "in": { "left": of, "right": entity(constraint)? } })),
        Some("is") => {
            let kind = constraint.get("entity_type").ok_or_else(|| odd("`is` without a type"))?;
            match constraint.get("in") {
                None => Ok(json!({ "is": { "left": of, "entity_type": kind } })),
                Some(within) => Ok(json!({ "is": { "left": of, "entity_type": kind, "in": entity(within)? } })),
            }
        }
        _ => Err(odd("a scope of an unknown kind")),
    }
}

fn odd(reason: &str) -> ProveError {
    ProveError::not_analysable(reason)
}

fn not(expression: Value) -> Value {
    object("!", object("arg", expression))
}

fn and(left: Value, right: Value) -> Value {
    binary("&&", left, right)
}

fn or(left: Value, right: Value) -> Value {
    binary("||", left, right)
}

fn binary(operator: &str, left: Value, right: Value) -> Value {
    let sides = [("left".to_owned(), left), ("right".to_owned(), right)];
    object(operator, Value::Object(sides.into_iter().collect()))
}

fn object(name: &str, value: Value) -> Value {
    Value::Object([(name.to_owned(), value)].into_iter().collect())
}

/// A balanced tree: a chain of a thousand would nest a thousand deep.
fn any(mut expressions: Vec<Value>) -> Value {
    if expressions.is_empty() {
        return json!({ "Value": false });
    }
    while expressions.len() > 1 {
        let mut halved = Vec::with_capacity(expressions.len().div_ceil(2));
        let mut rest = expressions.into_iter();
        while let Some(left) = rest.next() {
            halved.push(match rest.next() {
                Some(right) => or(left, right),
                None => left,
            });
        }
        expressions = halved;
    }
    expressions.pop().unwrap_or_else(|| json!({ "Value": false }))
}

fn has_arithmetic(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, inner)| {
            let operator = matches!(key.as_str(), "+" | "-" | "*" | "neg") && inner.is_object();
            operator || has_arithmetic(inner)
        }),
        Value::Array(items) => items.iter().any(has_arithmetic),
        _ => false,
    }
}
