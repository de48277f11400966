//! The decision procedure.
//!
//! Cedar answers up to three times. First the rules: without a permit, or with any forbid, the answer is no. Then, for what the rules
//! permit, the guards: each one that applies turns the permission into a question. Then, for what would be asked, what a person agreed
//! to before: that answers the questions that it was agreed to in answer of, counts only if no other is open, and is looked at for nothing else. A policy that fails while it is evaluated denies, whatever
//! the others say: a forbid that could not be evaluated might have been the one that mattered.

use std::collections::BTreeSet;

use cedar_policy::{
    Authorizer, Decision as CedarDecision, Entities, PolicySet as CedarSet, Request as CedarRequest, Response,
};
use palyra_common::{Digest, ToStableError as _, ToolVerdict};
use serde::{Deserialize, Serialize};

use crate::error::one_line;
use crate::names::Names;
use crate::reasons::{Reader, fill, nothing_permits};
use crate::{PolicyEntry, PolicyError, PolicySet, Request, Role, context, entities};

/// What was decided, by which policies, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Permit, ask or deny.
    pub verdict: ToolVerdict,
    /// Ids of the policies that determined it, sorted; empty when nothing permitted.
    pub policies: Vec<String>,
    /// Why, for the person.
    pub person: Vec<String>,
    /// Why, for the model.
    pub model: Vec<String>,
    /// What failed, if something did; the verdict is then a denial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// The policies that ask, if a person is asked.
    #[serde(skip)]
    pub asking: BTreeSet<String>,
    /// The set that decided.
    pub policy_set: Digest,
}

/// A request that was checked against the schema and can be decided by any set.
#[derive(Debug)]
pub struct Prepared<'a> {
    pub(crate) request: &'a Request,
    pub(crate) cedar: CedarRequest,
    pub(crate) entities: Entities,
}

impl<'a> Prepared<'a> {
    /// Checks a request against the schema.
    ///
    /// # Errors
    /// When it does not fit; it must then be denied.
    pub fn new(request: &'a Request) -> Result<Self, PolicyError> {
        let names = Names::get()?;
        let principal = entities::principal(names, &request.principal)?;
        let resource = entities::resource(names, &request.resource, context::tool_of(&request.context))?;
        let built = context::build(names, request)?;
        let action = names.action(request.action)?.clone();
        let cedar = CedarRequest::new(principal.uid(), action, resource.uid(), built.context, Some(names.schema()))
            .map_err(PolicyError::bad_request)?;
        let mut present = built.entities;
        for entity in [principal, resource] {
            if !present.iter().any(|other| other.uid() == entity.uid()) {
                present.push(entity);
            }
        }
        let entities = Entities::from_entities(present, Some(names.schema())).map_err(PolicyError::bad_request)?;
        Ok(Self { request, cedar, entities })
    }

    /// The request and its entities as Cedar has them, for programs that ask Cedar themselves: analysis and measurements.
    #[must_use]
    pub fn cedar(&self) -> (&CedarRequest, &Entities) {
        (&self.cedar, &self.entities)
    }

    pub(crate) fn ask(&self, policies: &CedarSet) -> Response {
        Authorizer::new().is_authorized(&self.cedar, policies, &self.entities)
    }
}

impl PolicySet {
    /// Decides on a request. There is always an answer; whatever cannot be decided is denied.
    #[must_use]
    pub fn decide(&self, request: &Request) -> Decision {
        match Prepared::new(request) {
            Ok(prepared) => self.decide_prepared(&prepared),
            Err(error) => self.refusal(request, &error),
        }
    }

    /// Decides on all the effects of one call together: the strictest verdict, every reason.
    #[must_use]
    pub fn decide_all(&self, requests: &[Request]) -> Decision {
        let together = requests.iter().map(|request| self.decide(request)).reduce(Decision::and);
        together.unwrap_or_else(|| {
            let reason = "the call declares no effect".to_owned();
            self.decision(ToolVerdict::Deny, Vec::new(), vec![reason.clone()], vec![reason], Vec::new())
        })
    }

    /// Decides on a request that was prepared before.
    #[must_use]
    pub fn decide_prepared(&self, prepared: &Prepared<'_>) -> Decision {
        let Some(slice) = self.slices.get(&prepared.request.action) else {
            return self.refusal(prepared.request, &PolicyError::broken("an action has no policies"));
        };

        let rules = prepared.ask(&slice.rules);
        if rules.diagnostics().errors().next().is_some() {
            return self.failure(&rules);
        }
        if rules.decision() == CedarDecision::Deny {
            return self.answer(ToolVerdict::Deny, prepared.request, &[&rules]);
        }
        if self.any(&rules, Role::PermitUnasked) {
            return self.answer(ToolVerdict::Permit, prepared.request, &[&rules]);
        }

        let guards = prepared.ask(&slice.guards);
        if guards.diagnostics().errors().next().is_some() {
            return self.failure(&guards);
        }
        let asking: BTreeSet<String> = self
            .determining(&[&rules, &guards])
            .filter(|entry| matches!(entry.annotations.role, Role::Guard | Role::PermitIfApproved))
            .map(|entry| entry.id.clone())
            .collect();
        if asking.is_empty() {
            return self.answer(ToolVerdict::Permit, prepared.request, &[&rules]);
        }

        let agreed = prepared.ask(&slice.agreed);
        if agreed.diagnostics().errors().next().is_some() {
            return self.failure(&agreed);
        }
        // INVARIANT: what was agreed to in answer of some questions answers no other, and each question has the same answer as the rest.
        let answering: Vec<&PolicyEntry> =
            self.determining(&[&agreed]).filter(|entry| entry.annotations.answers.is_superset(&asking)).collect();
        if !answering.is_empty() {
            let determining = self.determining(&[&rules]).chain(answering).collect();
            return self.determined(ToolVerdict::Permit, prepared.request, determining);
        }
        let decision = self.answer(ToolVerdict::NeedsApproval, prepared.request, &[&rules, &guards]);
        Decision { asking, ..decision }
    }

    /// The policies that determined the answers.
    fn determining<'a>(&'a self, responses: &[&'a Response]) -> impl Iterator<Item = &'a PolicyEntry> {
        let ids: Vec<_> = responses.iter().flat_map(|response| response.diagnostics().reason()).collect();
        ids.into_iter().filter_map(|id| self.entries.get::<str>(id.as_ref()))
    }

    fn any(&self, response: &Response, role: Role) -> bool {
        response
            .diagnostics()
            .reason()
            .any(|id| self.entries.get::<str>(id.as_ref()).is_some_and(|entry| entry.annotations.role == role))
    }

    /// The verdict with the policies that determined it. When a person is asked, the policies that ask come first.
    fn answer(&self, verdict: ToolVerdict, request: &Request, responses: &[&Response]) -> Decision {
        self.determined(verdict, request, self.determining(responses).collect())
    }

    fn determined(&self, verdict: ToolVerdict, request: &Request, mut determining: Vec<&PolicyEntry>) -> Decision {
        determining.sort_by_key(|entry| {
            let asks = matches!(entry.annotations.role, Role::Guard | Role::PermitIfApproved);
            (!asks, entry.id.as_str())
        });
        let (mut person, mut model) = (Vec::new(), Vec::new());
        // Why the call would be permitted otherwise only distracts from why a person is asked.
        let says_why = |entry: &&&PolicyEntry| {
            verdict != ToolVerdict::NeedsApproval
                || matches!(entry.annotations.role, Role::Guard | Role::PermitIfApproved)
        };
        for entry in determining.iter().filter(says_why) {
            let otherwise = || format!("decided by policy `{}`", entry.id);
            let filled = |reason: &Option<String>, reader| {
                reason.as_ref().map_or_else(otherwise, |text| fill(text, request, reader))
            };
            person.push(filled(&entry.annotations.reason_person, Reader::Person));
            model.push(filled(&entry.annotations.reason_model, Reader::Model));
        }
        if determining.is_empty() {
            let what = nothing_permits(request);
            model.push(format!("{what}; do not try to achieve the same effect another way"));
            person.push(what);
        }
        let mut policies: Vec<String> = determining.iter().map(|entry| entry.id.clone()).collect();
        policies.sort();
        self.decision(verdict, policies, person, model, Vec::new())
    }

    /// A denial because policies failed.
    fn failure(&self, response: &Response) -> Decision {
        let mut errors: Vec<String> =
            response.diagnostics().errors().map(|error| one_line(&error.to_string())).collect();
        errors.sort();
        let person = vec!["a policy could not be evaluated, so the call is denied".to_owned()];
        let model = vec!["the policies could not be evaluated".to_owned()];
        self.decision(ToolVerdict::Deny, Vec::new(), person, model, errors)
    }

    /// A denial because the request cannot be decided.
    fn refusal(&self, request: &Request, error: &PolicyError) -> Decision {
        let person = vec![format!("`{}` could not be interpreted, so it is denied", request.action)];
        let model = vec!["the call could not be evaluated".to_owned()];
        self.decision(ToolVerdict::Deny, Vec::new(), person, model, vec![error.to_stable().to_string()])
    }

    fn decision(
        &self,
        verdict: ToolVerdict,
        policies: Vec<String>,
        person: Vec<String>,
        model: Vec<String>,
        errors: Vec<String>,
    ) -> Decision {
        Decision { verdict, policies, person, model, errors, asking: BTreeSet::new(), policy_set: self.digest() }
    }
}

impl Decision {
    /// Both decisions as one: the stricter verdict, what determined it first.
    #[must_use]
    fn and(self, other: Self) -> Self {
        let (mut first, second) = if other.verdict > self.verdict { (other, self) } else { (self, other) };
        let add = |into: &mut Vec<String>, from: Vec<String>| {
            for text in from {
                if !into.contains(&text) {
                    into.push(text);
                }
            }
        };
        // Why something weaker would have been permitted only distracts from why the whole is not.
        if second.verdict == first.verdict {
            add(&mut first.person, second.person);
            add(&mut first.model, second.model);
            add(&mut first.policies, second.policies);
            first.asking.extend(second.asking);
            first.policies.sort();
        }
        add(&mut first.errors, second.errors);
        first
    }
}
