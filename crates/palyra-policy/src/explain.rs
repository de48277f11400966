//! Why a request is decided as it is: every policy that concerns its action, and whether it applied.

use cedar_policy::{Policy, PolicySet as CedarSet};
use palyra_common::ToStableError as _;
use serde::Serialize;

use crate::error::one_line;
use crate::{Decision, Place, PolicyError, PolicySet, Prepared, Request, Role};

/// Whether a policy applied to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Its scope and conditions hold.
    Applies,
    /// They do not.
    DoesNotApply,
    /// It could not be evaluated.
    Fails(String),
}

/// One policy in the light of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyExplanation {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub at: Place,
    /// Its part in a decision.
    pub role: Role,
    /// Whether it applied.
    pub outcome: Outcome,
    /// Its text.
    pub text: String,
}

/// A decision with everything that was weighed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// Every policy that concerns the action, those that apply first.
    pub policies: Vec<PolicyExplanation>,
    /// Why the request could not be weighed at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl PolicySet {
    /// Explains how a request is decided.
    #[must_use]
    pub fn explain(&self, request: &Request) -> Explanation {
        let decision = self.decide(request);
        let weighed = Prepared::new(request).and_then(|prepared| self.weigh(&prepared));
        match weighed {
            Ok(policies) => Explanation { decision, policies, refused: None },
            Err(error) => Explanation { decision, policies: Vec::new(), refused: Some(error.to_stable().to_string()) },
        }
    }

    fn weigh(&self, prepared: &Prepared<'_>) -> Result<Vec<PolicyExplanation>, PolicyError> {
        let slice = self.slices.get(&prepared.request.action).ok_or_else(|| PolicyError::broken("no slice"))?;
        let mut policies = Vec::new();
        for policy in slice.rules.policies().chain(slice.guards.policies()).chain(slice.agreed.policies()) {
            let Some(entry) = self.entries.get::<str>(policy.id().as_ref()) else { continue };
            policies.push(PolicyExplanation {
                id: entry.id.clone(),
                at: entry.at.clone(),
                role: entry.annotations.role,
                outcome: self.outcome(prepared, policy)?,
                text: entry.text.clone(),
            });
        }
        policies.sort_by(|left, right| {
            let later = |policy: &PolicyExplanation| policy.outcome == Outcome::DoesNotApply;
            (later(left), &left.id).cmp(&(later(right), &right.id))
        });
        Ok(policies)
    }

    /// Asks about one policy alone.
    fn outcome(&self, prepared: &Prepared<'_>, policy: &Policy) -> Result<Outcome, PolicyError> {
        let mut alone = CedarSet::new();
        match (policy.template_id(), policy.template_links()) {
            (Some(id), Some(values)) => {
                let template =
                    self.cedar.template(id).ok_or_else(|| PolicyError::broken("a link lost its template"))?;
                alone.add_template(template.clone()).map_err(PolicyError::broken)?;
                alone.link(id.clone(), policy.id().clone(), values).map_err(PolicyError::broken)?;
            }
            _ => alone.add(policy.clone()).map_err(PolicyError::broken)?,
        }
        let response = prepared.ask(&alone);
        let diagnostics = response.diagnostics();
        if let Some(error) = diagnostics.errors().next() {
            return Ok(Outcome::Fails(one_line(&error.to_string())));
        }
        Ok(if diagnostics.reason().next().is_some() { Outcome::Applies } else { Outcome::DoesNotApply })
    }
}
