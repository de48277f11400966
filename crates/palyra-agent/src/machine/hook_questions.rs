//! Questions that hooks want a person to answer about a step of the run: may it begin, may its answer be delivered, is another text delivered instead?
//!
//! Questions about calls take the ordinary way; see `approvals`.

use palyra_common::{
    ApprovalDecision, ApprovalId, Digest, HookDecision, Label, Risk, RunLifecyclePhase, TerminationReason, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Machine;
use super::action::{Action, Question};
use super::displayed::Displayed;
use super::hooks::{HookStep, said_by};
use super::state::{Ending, Phase};
use super::turns::detail;
use crate::canonical::canonical_json;
use crate::hooks::Ruling;

// What is asked, and what a refusal means: it differs, and nobody should have to guess.
const BEGIN: &str = "begin this run; refusing ends it";
const DELIVER: &str = "deliver the answer; refusing ends the run without one";
const REPLACE: &str = "deliver another text than the answer; refusing delivers the answer as it is";
const REPLACE_OR_END: &str = "deliver another text than the answer; refusing ends the run without one";

/// A question that a hook wants a person to answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookQuestion {
    /// The question.
    pub approval_id: ApprovalId,
    /// What is asked: whether to go on, or which text is delivered.
    pub question: Question,
    /// When it lapses.
    pub expires_at: Option<Timestamp>,
    /// What waits for the answer.
    pub step: HookStep,
    /// The answer that hooks propose instead.
    pub proposed: Option<(String, Label)>,
}

impl Machine {
    /// Asks a person about a step.
    pub(super) fn ask_about_step(&mut self, step: HookStep, ruling: Ruling, at: Timestamp, out: &mut Vec<Action>) {
        let (question, tool, call_id, summary) = match (&step, ruling.decision) {
            (HookStep::BeforeRun, _) => (Question::MayGoOn, "palyra.run", "run", BEGIN),
            (HookStep::BeforeDelivery(_), HookDecision::TransformPreview) => {
                (Question::ReplaceAnswer, "palyra.delivery", "delivery", REPLACE)
            }
            (HookStep::BeforeDelivery(_), _) if ruling.text.is_some() => {
                (Question::MayGoOn, "palyra.delivery", "delivery", REPLACE_OR_END)
            }
            (HookStep::BeforeDelivery(_), _) => (Question::MayGoOn, "palyra.delivery", "delivery", DELIVER),
        };
        let (arguments, proposed) = match &step {
            HookStep::BeforeRun => (json!({ "prompt": self.spec.prompt }), None),
            HookStep::BeforeDelivery(ending) => about_delivery(ending, &ruling),
        };
        let older = Digest::of_parts(&[tool.as_bytes(), canonical_json(&arguments).as_bytes()]);
        let displayed = Displayed {
            reasons: ruling.reasons,
            ..Displayed::step(question, Risk::Medium, tool, arguments, summary.to_owned())
        };
        let (approval_id, expires_at) = self.put_question(call_id, displayed, older, at, out);
        let question = HookQuestion { approval_id, question, expires_at, step, proposed };
        self.enter(Phase::AskingForHook(Box::new(question)), at, out);
    }

    /// What a person said to it, if this is the question that is open.
    pub(super) fn on_hook_question_decided(
        &mut self,
        id: ApprovalId,
        decision: ApprovalDecision,
        reason: Option<&str>,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Option<()> {
        let Phase::AskingForHook(question) = &self.phase else { return None };
        if question.approval_id != id {
            return None;
        }
        let HookQuestion { question, step, proposed, .. } = *question.clone();
        if let (Question::AcceptChanges, HookStep::BeforeDelivery(ending)) = (question, &step) {
            self.on_changes_decided(decision, reason, ending.clone(), at, out);
            return Some(());
        }
        let allowed = decision == ApprovalDecision::Allow;
        // Refusing another text is not refusing the answer: it is delivered as the model wrote it.
        if !allowed && question != Question::ReplaceAnswer {
            let message = match decision {
                ApprovalDecision::Timeout => "a hook wanted a person to agree, and nobody did in time".to_owned(),
                ApprovalDecision::Error => "a hook wanted a person to agree, and nobody could be asked".to_owned(),
                ApprovalDecision::Allow | ApprovalDecision::Deny => match reason {
                    None => "a person refused what a hook had them asked about".to_owned(),
                    Some(reason) => format!("what a hook wanted a person to allow was denied ({reason})"),
                },
            };
            let ending =
                Ending::without_answer(TerminationReason::ApprovalDenied, Some(detail("approval_denied", message)));
            self.enter_terminal(RunLifecyclePhase::Aborted, ending, at, out);
            return Some(());
        }
        let step = match (step, proposed) {
            (HookStep::BeforeDelivery(ending), Some(proposed)) if allowed => {
                HookStep::BeforeDelivery(Ending { answer: Some(proposed), ..ending })
            }
            (step, _) => step,
        };
        self.take_step(step, at, out);
        Some(())
    }
}

/// The question about a delivery, and the answer that would be delivered instead.
fn about_delivery(ending: &Ending, ruling: &Ruling) -> (Value, Option<(String, Label)>) {
    let (answer, label) = ending.answer.clone().unwrap_or_else(|| (String::new(), Label::system()));
    match &ruling.text {
        None => (json!({ "answer": answer }), None),
        Some(text) => {
            let label = said_by(&ruling.proposers, &label);
            (json!({ "answer": answer, "proposed": text }), Some((text.clone(), label)))
        }
    }
}
