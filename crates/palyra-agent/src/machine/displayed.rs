//! What a question shows a person, and the digest that binds the answer to exactly that.
//!
//! Every question is put by [`Machine::put_question`], from one [`Displayed`]: whatever surfaces show of it comes out of that value, and the digest takes the value apart field by field.
//! INVARIANT: what is added to a question and not to its digest does not compile.

use palyra_common::{ApprovalEvidence, ApprovalId, ApprovalSubject, DataOrigin, Digest, Label, Risk, Timestamp};
use palyra_policy::Containment;
use serde::Serialize;
use serde_json::Value;

use super::Machine;
use super::action::{Action, ApprovalRequest, Question};
use super::input::{CallFacts, Offer};
use super::state::Call;
use crate::canonical::canonical_json;
use crate::spec::BINDS_WHAT_IS_SHOWN;

/// All that a person is shown, or that what they are shown was made from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Displayed {
    pub(super) subject: ApprovalSubject,
    pub(super) risk: Risk,
    pub(super) question: Question,
    pub(super) tool: String,
    /// Everything that the call is given: for a program also its standard input, its directory and its environment.
    pub(super) arguments: Value,
    pub(super) summary: String,
    pub(super) reasons: Vec<String>,
    pub(super) evidence: Vec<ApprovalEvidence>,
    pub(super) offer: Option<Offer>,
    /// The normalised thing that is acted on, so that a path is that path and no other.
    pub(super) resource: String,
    /// Where the arguments go.
    pub(super) destination: Option<DataOrigin>,
    pub(super) containment: Containment,
    /// Label of everything that the planner had seen.
    pub(super) seen: Label,
}

impl Displayed {
    /// A question about a step of the run itself.
    pub(super) fn step(question: Question, risk: Risk, tool: &str, arguments: Value, summary: String) -> Self {
        Self {
            subject: ApprovalSubject::Tool,
            risk,
            question,
            tool: tool.to_owned(),
            arguments,
            summary,
            reasons: Vec::new(),
            evidence: Vec::new(),
            offer: None,
            resource: String::new(),
            destination: None,
            containment: Containment::Reaching,
            seen: Label::system(),
        }
    }

    /// A question about a call.
    pub(super) fn call(call: &Call, question: Question, reasons: Vec<String>, facts: &CallFacts) -> Self {
        Self {
            subject: ApprovalSubject::Tool,
            risk: facts.risk,
            question,
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            summary: facts.summary.clone(),
            reasons,
            evidence: facts.evidence.clone(),
            offer: facts.offer.clone().filter(|_| question == Question::MayItRun),
            resource: facts.resource.clone(),
            destination: facts.destination.clone(),
            containment: facts.containment,
            seen: facts.seen.clone(),
        }
    }

    /// What an answer is bound to.
    fn digest(&self) -> Digest {
        let Self {
            subject,
            risk,
            question,
            tool,
            arguments,
            summary,
            reasons,
            evidence,
            offer,
            resource,
            destination,
            containment,
            seen,
        } = self;
        let parts = [
            canonical(subject),
            canonical(risk),
            canonical(question),
            canonical(tool),
            canonical(arguments),
            canonical(summary),
            canonical(reasons),
            canonical(evidence),
            canonical(offer),
            canonical(resource),
            canonical(destination),
            canonical(containment),
            canonical(seen),
        ];
        Digest::of_parts(&parts.each_ref().map(String::as_bytes))
    }
}

/// The same text for the same value, and another one for any other.
fn canonical(value: &impl Serialize) -> String {
    canonical_json(&serde_json::to_value(value).unwrap_or_default())
}

/// The digest by which a refused call is recognised when it is proposed again: the call itself, and how far the planner could be trusted.
///
/// It leaves out how the call was shown, because a refusal holds however the same call is put the next time.
pub(super) fn proposal_digest(call: &Call, facts: &CallFacts) -> Digest {
    Digest::of_parts(&[
        call.tool.as_bytes(),
        canonical_json(&call.arguments).as_bytes(),
        facts.resource.as_bytes(),
        facts.seen.integrity.as_str().as_bytes(),
        facts.seen.confidentiality.as_str().as_bytes(),
    ])
}

impl Machine {
    /// Puts a question to a person; says under which id, and when it lapses. `older` is what runs of older versions bind the answer to.
    pub(super) fn put_question(
        &mut self,
        call_id: &str,
        displayed: Displayed,
        older: Digest,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> (ApprovalId, Option<Timestamp>) {
        let binding = if self.spec.machine_version < BINDS_WHAT_IS_SHOWN { older } else { displayed.digest() };
        let (approval_id, expires_at) = self.next_question(call_id, at);
        let Displayed { subject, risk, question, tool, arguments, summary, reasons, evidence, offer, .. } = displayed;
        out.push(Action::RequestApproval(Box::new(ApprovalRequest {
            approval_id,
            owner: self.spec.owner.clone(),
            call_id: call_id.to_owned(),
            subject,
            risk,
            question,
            tool,
            arguments,
            summary,
            reasons,
            evidence,
            offer,
            binding,
            expires_at,
        })));
        (approval_id, expires_at)
    }
}

#[cfg(test)]
#[path = "displayed_tests.rs"]
mod tests;
