//! What differs between two sets, by the ids of their policies.
//!
//! Formatting and comments are no difference: texts are compared by what Cedar understood. Whether a change can widen what is
//! permitted is told from effects alone; that an edit only narrows is for `prove` to show.

use std::collections::BTreeSet;
use std::fmt;

use cedar_policy::PolicyId;
use serde::Serialize;
use serde_json::Value;

use crate::deep_stack::on_deep_stack;
use crate::{PolicyEntry, PolicyError, PolicySet, Role};

/// What happened to one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum Change {
    /// It is new.
    Added {
        /// The policy.
        after: Box<PolicyEntry>,
    },
    /// It is gone.
    Removed {
        /// The policy.
        before: Box<PolicyEntry>,
    },
    /// It means something else.
    Changed {
        /// As it was.
        before: Box<PolicyEntry>,
        /// As it is.
        after: Box<PolicyEntry>,
    },
}

impl Change {
    /// Id of the policy.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Added { after } | Self::Changed { after, .. } => &after.id,
            Self::Removed { before } => &before.id,
        }
    }

    /// Whether more may be permitted, or permitted unasked, because of this change.
    #[must_use]
    pub fn may_widen(&self) -> bool {
        let permits = |entry: &PolicyEntry| {
            matches!(entry.annotations.role, Role::Permit | Role::PermitIfApproved | Role::PermitUnasked | Role::Agreed)
        };
        match self {
            // A permit that asks can also narrow, because it makes other permits ask; it is still counted as widening.
            Self::Added { after } => permits(after),
            Self::Removed { before } => !permits(before) || before.annotations.role == Role::PermitIfApproved,
            Self::Changed { .. } => true,
        }
    }
}

/// All differences between two sets, in the order of the ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PolicyDiff {
    /// The differences.
    pub changes: Vec<Change>,
}

impl PolicyDiff {
    /// Whether the sets mean the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl fmt::Display for PolicyDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |f: &mut fmt::Formatter<'_>, sign: char, text: &str| {
            text.lines().try_for_each(|line| writeln!(f, "{sign} {line}"))
        };
        for change in &self.changes {
            let note = if change.may_widen() { " (may widen)" } else { "" };
            match change {
                Change::Added { after } => {
                    writeln!(f, "added {} at {}{note}", after.id, after.at)?;
                    lines(f, '+', &after.text)?;
                }
                Change::Removed { before } => {
                    writeln!(f, "removed {} from {}{note}", before.id, before.at)?;
                    lines(f, '-', &before.text)?;
                }
                Change::Changed { before, after } => {
                    writeln!(f, "changed {} at {}{note}", after.id, after.at)?;
                    lines(f, '-', &before.text)?;
                    lines(f, '+', &after.text)?;
                }
            }
        }
        Ok(())
    }
}

/// Compares two sets.
///
/// # Errors
/// Only if a thread with a deep stack cannot be had.
pub fn diff(before: &PolicySet, after: &PolicySet) -> Result<PolicyDiff, PolicyError> {
    on_deep_stack(|| Ok(compare(before, after)))
}

fn compare(before: &PolicySet, after: &PolicySet) -> PolicyDiff {
    let ids: BTreeSet<&String> =
        [before, after].into_iter().flat_map(|set| set.entries.keys().chain(set.templates.keys())).collect();
    let find = |set: &PolicySet, id: &str| set.entries.get(id).or_else(|| set.templates.get(id)).cloned().map(Box::new);
    let changes = ids
        .into_iter()
        .filter_map(|id| match (find(before, id), find(after, id)) {
            (None, Some(after)) => Some(Change::Added { after }),
            (Some(before), None) => Some(Change::Removed { before }),
            (Some(old), Some(new)) if meaning(before, id) != meaning(after, id) => {
                Some(Change::Changed { before: old, after: new })
            }
            _ => None,
        })
        .collect();
    PolicyDiff { changes }
}

/// A policy as Cedar understood it, annotations included; a grant is its template and its slots.
fn meaning(set: &PolicySet, id: &str) -> Option<Value> {
    let id = PolicyId::new(id);
    if let Some(policy) = set.cedar.policy(&id) {
        if let Some(template) = policy.template_id() {
            let template = set.cedar.template(template).and_then(|template| template.to_json().ok());
            let mut slots: Vec<String> = policy
                .template_links()
                .into_iter()
                .flatten()
                .map(|(slot, value)| format!("{slot} = {value}"))
                .collect();
            slots.sort();
            return Some(serde_json::json!({ "template": template, "slots": slots }));
        }
        return policy.to_json().ok();
    }
    set.cedar.template(&id).and_then(|template| template.to_json().ok())
}
