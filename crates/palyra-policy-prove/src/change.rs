//! What a change of policies says about itself, before any solver is asked.
//!
//! Taking a permit away or adding a forbid narrows, whatever the policies say; so does adding a guard, or taking back what a person agreed
//! to. Most edits that are meant to narrow are of this kind. Only what can go either way is left to the solver.

use palyra_policy::Role;

use crate::Widening;
use crate::formula::Part;

/// The parts that only one of two sets has.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    added: Vec<&'a Part>,
    removed: Vec<&'a Part>,
}

impl<'a> Change<'a> {
    pub(crate) fn between(before: &'a [Part], after: &'a [Part]) -> Self {
        let by_name = before.iter().chain(after).any(|part| part.role == Role::Agreed);
        let only_in = |these: &'a [Part], those: &[Part]| {
            // What was agreed to names the policies whose questions it answers, so then their names decide, too.
            let same = |part: &Part, other: &Part| {
                other.same_meaning(part) && (!(by_name && part.asks()) || other.id == part.id)
            };
            these.iter().filter(|part| !those.iter().any(|other| same(part, other))).collect()
        };
        Self { added: only_in(after, before), removed: only_in(before, after) }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    fn adds(&self, roles: &[Role]) -> bool {
        self.added.iter().any(|part| roles.contains(&part.role))
    }

    fn removes(&self, roles: &[Role]) -> bool {
        self.removed.iter().any(|part| roles.contains(&part.role))
    }

    /// What the solver has to answer, in this order.
    pub(crate) fn questions(&self) -> Vec<Widening> {
        let permits = [Role::Permit, Role::PermitIfApproved, Role::PermitUnasked];
        let (asks, answers) = ([Role::Guard, Role::PermitIfApproved], [Role::PermitUnasked, Role::Agreed]);
        let may_permit_more = self.adds(&permits) || self.removes(&[Role::Forbid]);
        let asking_changed = self.adds(&asks) || self.adds(&answers) || self.removes(&asks) || self.removes(&answers);
        let may_ask_less = self.removes(&asks) || self.adds(&answers);
        let mut questions = Vec::new();
        if may_permit_more {
            questions.push(Widening::Permits);
        }
        // If nothing that asks or answers changed, what is permitted unasked narrows as soon as what is permitted does.
        if may_ask_less || (may_permit_more && asking_changed) {
            questions.push(Widening::StopsAsking);
        }
        questions
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn part(id: &str, role: Role) -> Part {
        Part { id: id.to_owned(), role, json: serde_json::json!({ "effect": id }), answers: BTreeSet::new() }
    }

    #[test]
    fn what_can_only_narrow_asks_nothing() {
        use Role::{Agreed, Forbid, Guard, Permit, PermitIfApproved, PermitUnasked};
        use Widening::{Permits, StopsAsking};
        let table: [(Role, &[Widening], &[Widening]); 6] = [
            (Permit, &[Permits], &[]),
            (PermitIfApproved, &[Permits, StopsAsking], &[StopsAsking]),
            (PermitUnasked, &[Permits, StopsAsking], &[]),
            (Agreed, &[StopsAsking], &[]),
            (Guard, &[], &[StopsAsking]),
            (Forbid, &[], &[Permits]),
        ];
        for (role, when_added, when_removed) in table {
            let (without, with) = (vec![part("a", Permit)], vec![part("a", Permit), part("b", role)]);
            assert_eq!(Change::between(&without, &with).questions(), when_added, "{role:?} added");
            assert_eq!(Change::between(&with, &without).questions(), when_removed, "{role:?} removed");
            assert!(Change::between(&with, &with).is_none());
        }
    }
}
