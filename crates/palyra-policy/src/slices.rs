//! The policies that can matter for each action.
//!
//! A policy whose scope does not contain an action is false for it and cannot fail, so leaving it out changes nothing but the time a
//! decision takes. Guards stand apart from the rules, because they are asked only about what is otherwise permitted.

use std::collections::BTreeMap;

use cedar_policy::{ActionConstraint, Entities, EntityUid, Policy, PolicySet as CedarSet};

use crate::names::Names;
use crate::policy_set::PolicyEntry;
use crate::{ActionKind, PolicyError, Role};

/// The policies that can matter for one action.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slice {
    /// Permits and forbids.
    pub(crate) rules: CedarSet,
    /// What turns a permission into a question.
    pub(crate) guards: CedarSet,
    /// What a person agreed to before: the answer to such a question.
    pub(crate) agreed: CedarSet,
}

pub(crate) fn slice(
    names: &Names,
    whole: &CedarSet,
    entries: &BTreeMap<String, PolicyEntry>,
) -> Result<BTreeMap<ActionKind, Slice>, PolicyError> {
    let mut slices = BTreeMap::new();
    for action in ActionKind::ALL {
        let uid = names.action(*action)?;
        let mut slice = Slice::default();
        for policy in whole.policies().filter(|policy| concerns(&names.actions, policy, uid)) {
            let id: &str = policy.id().as_ref();
            let entry = entries.get(id).ok_or_else(|| PolicyError::broken(format!("policy `{id}` has no entry")))?;
            match entry.annotations.role {
                Role::Guard => add(&mut slice.guards, whole, policy)?,
                Role::Agreed => add(&mut slice.agreed, whole, policy)?,
                Role::Permit | Role::PermitIfApproved | Role::PermitUnasked | Role::Forbid => {
                    add(&mut slice.rules, whole, policy)?;
                }
            }
        }
        slices.insert(*action, slice);
    }
    Ok(slices)
}

fn concerns(actions: &Entities, policy: &Policy, action: &EntityUid) -> bool {
    let within = |group: &EntityUid| group == action || actions.is_ancestor_of(group, action);
    match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(only) => only == *action,
        ActionConstraint::In(groups) => groups.iter().any(within),
    }
}

/// A linked policy needs its template in the same set.
fn add(into: &mut CedarSet, whole: &CedarSet, policy: &Policy) -> Result<(), PolicyError> {
    let (Some(template_id), Some(values)) = (policy.template_id(), policy.template_links()) else {
        return into.add(policy.clone()).map_err(PolicyError::broken);
    };
    if into.template(template_id).is_none() {
        let template = whole.template(template_id).ok_or_else(|| PolicyError::broken("a link lost its template"))?;
        into.add_template(template.clone()).map_err(PolicyError::broken)?;
    }
    into.link(template_id.clone(), policy.id().clone(), values).map_err(PolicyError::broken)
}
