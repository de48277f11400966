//! Decisions on commands, remembered.
//!
//! A cache belongs to one set of policies and goes with it, so a reload can never be answered from before. The key is everything that a
//! policy can see but the time; if any policy that concerns commands may look at the time, nothing is remembered at all. Neither is a
//! decision that came from a failure.
//!
//! The size is bounded by two halves: when the newer one is full it becomes the older one, and the older one is forgotten. What is used
//! is taken over, so it stays.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::{Mutex, PoisonError};

use cedar_policy::Policy;
use palyra_common::{PrincipalRole, TokenScope};
use serde_json::Value;

use crate::slices::Slice;
use crate::{ActionKind, CommandEffect, CommandRequest, Decision};

/// Decisions in each half: a few hundred commands for each of a few callers.
const HALF: usize = 1_024;
/// Longest key that is worth remembering; ids of principals are far shorter.
const MAX_KEY_BYTES: usize = 1_024;

const COMMANDS: [ActionKind; 3] = [ActionKind::CommandRead, ActionKind::CommandChange, ActionKind::CommandAdminister];

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    principal: String,
    device: Option<String>,
    role: PrincipalRole,
    scopes: Vec<TokenScope>,
    via: String,
    command: String,
    scope: TokenScope,
    effect: CommandEffect,
    owner: Option<String>,
    workspace: Option<String>,
}

impl Key {
    fn of(command: &CommandRequest<'_>) -> Option<Self> {
        let parts = [command.principal_id, command.via, command.command];
        let optional = [command.device, command.owner, command.workspace].into_iter().flatten();
        let bytes: usize = parts.into_iter().chain(optional).map(str::len).sum();
        (bytes <= MAX_KEY_BYTES).then(|| Self {
            principal: command.principal_id.to_owned(),
            device: command.device.map(str::to_owned),
            role: command.role,
            scopes: command.scopes.iter().copied().collect(),
            via: command.via.to_owned(),
            command: command.command.to_owned(),
            scope: command.scope,
            effect: command.effect,
            owner: command.owner.map(str::to_owned),
            workspace: command.workspace.map(str::to_owned),
        })
    }
}

#[derive(Debug, Default)]
struct Halves {
    newer: HashMap<Key, Decision>,
    older: HashMap<Key, Decision>,
}

impl Halves {
    fn insert(&mut self, key: Key, decision: Decision) {
        if self.newer.len() >= HALF {
            self.older = mem::take(&mut self.newer);
        }
        self.newer.insert(key, decision);
    }
}

/// The remembered decisions of one set; none for a set whose policies may look at the time.
#[derive(Debug, Default)]
pub(crate) struct CommandCache {
    halves: Option<Mutex<Halves>>,
}

impl CommandCache {
    pub(crate) fn of(slices: &BTreeMap<ActionKind, Slice>) -> Self {
        let mut concerning = COMMANDS
            .iter()
            .filter_map(|action| slices.get(action))
            .flat_map(|slice| slice.rules.policies().chain(slice.guards.policies()).chain(slice.agreed.policies()));
        let timeless = !concerning.any(may_read_time);
        Self { halves: timeless.then(Mutex::default) }
    }

    pub(crate) fn get(&self, command: &CommandRequest<'_>) -> Option<Decision> {
        let key = Key::of(command)?;
        let mut halves = self.halves.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = halves.newer.get(&key) {
            return Some(found.clone());
        }
        let found = halves.older.remove(&key)?;
        halves.insert(key, found.clone());
        Some(found)
    }

    pub(crate) fn keep(&self, command: &CommandRequest<'_>, decision: &Decision) {
        let (Some(halves), Some(key)) = (&self.halves, Key::of(command)) else { return };
        if decision.errors.is_empty() {
            halves.lock().unwrap_or_else(PoisonError::into_inner).insert(key, decision.clone());
        }
    }
}

/// Whether a policy could see the time. One whose form cannot be looked at could.
fn may_read_time(policy: &Policy) -> bool {
    policy.to_json().map_or(true, |json| sees_time(&json))
}

/// Reading `context.now` sees the time, and so does using `context` in any other way than through the name of another attribute.
fn sees_time(json: &Value) -> bool {
    match json {
        Value::Object(fields) => fields.iter().any(|(operator, operands)| {
            let of_context = operands.get("left").is_some_and(is_context);
            match (operator.as_str(), operands.get("attr").and_then(Value::as_str)) {
                ("." | "has", Some(attribute)) if of_context => attribute == "now",
                _ => is_context(json) || sees_time(operands),
            }
        }),
        Value::Array(items) => items.iter().any(sees_time),
        _ => false,
    }
}

fn is_context(json: &Value) -> bool {
    json.get("Var").and_then(Value::as_str) == Some("context")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn decision(reason: String) -> Decision {
        Decision {
            verdict: palyra_common::ToolVerdict::Permit,
            policies: Vec::new(),
            person: vec![reason],
            model: Vec::new(),
            errors: Vec::new(),
            asking: BTreeSet::new(),
            policy_set: palyra_common::Digest::of(&[]),
        }
    }

    fn command<'a>(name: &'a str, scopes: &'a std::collections::BTreeSet<TokenScope>) -> CommandRequest<'a> {
        CommandRequest {
            principal_id: "user:alice",
            device: None,
            role: PrincipalRole::Owner,
            scopes,
            via: "console",
            command: name,
            scope: TokenScope::RunsRead,
            effect: CommandEffect::Read,
            owner: None,
            workspace: None,
            now: palyra_common::Timestamp(0),
        }
    }

    #[test]
    fn the_size_is_bounded_and_what_is_used_stays() {
        let cache = CommandCache::of(&BTreeMap::new());
        let scopes = std::collections::BTreeSet::new();
        cache.keep(&command("used", &scopes), &decision("used".into()));
        for number in 0..5 * HALF {
            let name = format!("c{number}");
            cache.keep(&command(&name, &scopes), &decision(name.clone()));
            assert_eq!(cache.get(&command(&name, &scopes)).unwrap().person, [name]);
            assert!(cache.get(&command("used", &scopes)).is_some());
            let halves = cache.halves.as_ref().unwrap().lock().unwrap();
            assert!(halves.newer.len() <= HALF && halves.older.len() <= HALF);
        }
        assert!(cache.get(&command("c0", &scopes)).is_none());
    }

    #[test]
    fn failures_and_monsters_are_not_remembered() {
        let cache = CommandCache::of(&BTreeMap::new());
        let scopes = std::collections::BTreeSet::new();
        let failed = Decision { errors: vec!["failed".into()], ..decision(String::new()) };
        cache.keep(&command("failed", &scopes), &failed);
        assert!(cache.get(&command("failed", &scopes)).is_none());
        let monster = "x".repeat(MAX_KEY_BYTES);
        cache.keep(&command(&monster, &scopes), &decision(String::new()));
        assert!(cache.get(&command(&monster, &scopes)).is_none());
    }

    fn sees(condition: &str) -> bool {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        may_read_time(&Policy::parse(None, text).unwrap())
    }

    #[test]
    fn every_way_to_see_the_time_is_noticed() {
        for timeless in [
            "true",
            "context.own",
            "context.scopes.contains(context.scope)",
            "if context.own then context.role == \"now\" else false",
            "context has role && principal in resource.owner",
            "resource.owner == User::\"context\"",
        ] {
            assert!(!sees(timeless), "{timeless}");
        }
        for timely in [
            "context.now > 5",
            "context[\"now\"] > 5",
            "context has now",
            "context == {now: 5}",
            "[context].contains({now: 5})",
            "(if context.own then context else context).now > 5",
            "if context.own then context.now > 5 else false",
            "!(context.own && [1, context.now].contains(3))",
            "{a: context.now}.a > 3",
        ] {
            assert!(sees(timely), "{timely}");
        }
    }
}
