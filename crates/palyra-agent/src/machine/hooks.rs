//! Hooks in the life of a run.
//!
//! The machine knows which bindings there are because it was told (`HooksBound`), asks for them by `RunHooks` and weighs what they said when
//! `HooksAnswered` arrives. Without a binding for a phase nothing is asked and nothing is recorded.
//!
//! A call is screened after policy has let it pass (outright, or if a person agrees) and before anybody is asked or anything runs, so that a person sees
//! one question with all the reasons for it. Hooks cannot permit: what policy denied never reaches them, and their arguments are not taken back.
//!
//! INVARIANT: a step that waits for hooks (`Activity::Hooks`, `Screening`, `Reviewing`) has its `RunHooks` on the tape, and after a restart asks again under
//! the same occurrence id. What hooks said while the run was held counts when it goes on.

use std::time::Duration;

use palyra_common::{
    ApprovalDecision, ApprovalId, ApprovalSubject, Confidentiality, Digest, HookDecision, Integrity, Label,
    OutputClass, Risk, RunLifecycleHookPhase, RunLifecyclePhase, TerminationReason, Timestamp, ToolVerdict,
};
use palyra_flow::{Reading, SourceNaming, Variables};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::action::{Action, ApprovalRequest, Question};
use super::approvals::approval_id;
use super::input::{CallFacts, CallResult, Decided, Showing};
use super::state::{Activity, CallOutcome, CallState, Ending, Phase};
use super::turns::detail;
use super::{Machine, Rejected};
use crate::hooks::{HookBindingRecord, HookResult, HooksAnswered, Ruling, judge};

/// Detail code of a run, and code of a call, that a hook refused.
const BLOCKED: &str = "hook_blocked";
/// Detail code of a run that a hook ended.
const FAILED: &str = "hook_failed_run";
/// Most of a result that hooks are shown, in bytes: a hook that needs more is told that there is more.
const SHOWN_BYTES: usize = 16 << 10;

/// A step of the run, rather than of a call, that waits for hooks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookWait {
    /// The occurrence.
    pub occurrence_id: String,
    /// Who is asked, in order.
    pub hooks: Vec<String>,
    /// What waits.
    pub step: HookStep,
    /// What they said while the run was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Vec<HookResult>>,
}

/// What waits for hooks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum HookStep {
    /// The first model turn.
    BeforeRun,
    /// The delivery of the answer.
    BeforeDelivery(Ending),
}

impl HookStep {
    const fn phase(&self) -> RunLifecycleHookPhase {
        match self {
            Self::BeforeRun => RunLifecycleHookPhase::BeforeRun,
            Self::BeforeDelivery(_) => RunLifecycleHookPhase::BeforeDelivery,
        }
    }
}

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

/// A call that hooks look at before anything comes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Screening {
    /// The occurrence.
    pub occurrence_id: String,
    /// Who is asked, in order.
    pub hooks: Vec<String>,
    /// What policy said: permitted, or if a person agrees.
    pub verdict: ToolVerdict,
    /// Why, in plain words, for the person.
    pub reasons: Vec<String>,
    /// About the call.
    pub facts: CallFacts,
}

/// A finished call that hooks look at before the run goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reviewing {
    /// The occurrence.
    pub occurrence_id: String,
    /// Who is asked, in order.
    pub hooks: Vec<String>,
    /// About the call.
    pub facts: CallFacts,
    /// What came of it, as the planner will see it.
    pub result: Box<CallResult>,
    /// The beginning of what it gave, as it gave it.
    pub content: String,
    /// Whether there is more of it.
    pub more: bool,
    /// Label of what it gave.
    pub label: Label,
}

impl Machine {
    /// The bindings that count for this run, in the order in which they are asked.
    #[must_use]
    pub fn hooks(&self) -> &[HookBindingRecord] {
        &self.hooks
    }

    pub(super) fn on_hooks_bound(&mut self, mut bindings: Vec<HookBindingRecord>) {
        bindings.retain(|binding| binding.enabled && binding.event.run_phase().is_some());
        HookBindingRecord::sort(&mut bindings);
        self.hooks = bindings;
    }

    /// Who is to be asked now.
    fn hooks_of(&self, phase: RunLifecycleHookPhase, tool: Option<&str>) -> Vec<String> {
        self.hooks.iter().filter(|hook| hook.applies(phase, tool)).map(|hook| hook.id.clone()).collect()
    }

    /// Asks the hooks of a phase, if there are any; returns the occurrence and who is asked.
    fn ask_hooks(
        &mut self,
        phase: RunLifecycleHookPhase,
        call: Option<(&str, &str)>,
        out: &mut Vec<Action>,
    ) -> Option<(String, Vec<String>)> {
        let hooks = self.hooks_of(phase, call.map(|(_, tool)| tool));
        if hooks.is_empty() {
            return None;
        }
        self.hook_occurrences += 1;
        let digest = Digest::of_parts(&[
            self.spec.run_id.to_string().as_bytes(),
            b"hooks",
            &self.hook_occurrences.to_be_bytes(),
        ]);
        let occurrence_id = format!("occ-{}", digest.to_hex().get(..32).unwrap_or_default());
        out.push(Action::RunHooks {
            occurrence_id: occurrence_id.clone(),
            phase,
            call_id: call.map(|(call_id, _)| call_id.to_owned()),
            hooks: hooks.clone(),
        });
        Some((occurrence_id, hooks))
    }

    /// Begins a step of the run that hooks may look at first.
    pub(super) fn begin_step(&mut self, step: HookStep, at: Timestamp, out: &mut Vec<Action>) {
        match self.ask_hooks(step.phase(), None, out) {
            Some((occurrence_id, hooks)) => {
                let wait = HookWait { occurrence_id, hooks, step, answered: None };
                self.enter(Phase::Running(Activity::Hooks(wait)), at, out);
            }
            None => self.take_step(step, at, out),
        }
    }

    fn take_step(&mut self, step: HookStep, at: Timestamp, out: &mut Vec<Action>) {
        match step {
            HookStep::BeforeRun => self.next_turn(at, out),
            // Somebody wrote meanwhile: the answer was not the last word.
            HookStep::BeforeDelivery(_) if !self.queued.is_empty() => self.next_turn(at, out),
            HookStep::BeforeDelivery(ending) => self.enter_terminal(RunLifecyclePhase::Completed, ending, at, out),
        }
    }

    /// After the fact; called while the terminal phase is entered.
    pub(super) fn ask_after_run(&mut self, out: &mut Vec<Action>) {
        let _ = self.ask_hooks(RunLifecycleHookPhase::AfterRun, None, out);
    }

    /// What becomes of a call that policy lets pass: hooks look at it first, if there are any.
    pub(super) fn screen(&mut self, index: usize, decided: Decided, at: Timestamp, out: &mut Vec<Action>) -> CallState {
        let Some((call_id, tool)) =
            self.round().and_then(|round| round.calls.get(index)).map(|call| (call.call_id.clone(), call.tool.clone()))
        else {
            return super::round::not_run("internal", "the call disappeared".to_owned());
        };
        let Decided { verdict, reasons, facts, .. } = decided;
        match self.ask_hooks(RunLifecycleHookPhase::BeforeTool, Some((&call_id, &tool)), out) {
            Some((occurrence_id, hooks)) => {
                CallState::Screening(Box::new(Screening { occurrence_id, hooks, verdict, reasons, facts }))
            }
            None => self.passed(index, verdict, reasons, facts, at, out),
        }
    }

    /// A call that nothing stands in the way of but, perhaps, a person.
    fn passed(
        &mut self,
        index: usize,
        verdict: ToolVerdict,
        reasons: Vec<String>,
        facts: CallFacts,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> CallState {
        if verdict == ToolVerdict::Permit {
            self.permitted(index, facts, out)
        } else {
            self.ask_person(index, Question::MayItRun, reasons, facts, at, out)
        }
    }

    /// Lets hooks look at a call that has just finished, if there are any.
    pub(super) fn review(
        &mut self,
        call_id: &str,
        facts: CallFacts,
        content: &str,
        label: Label,
        out: &mut Vec<Action>,
    ) {
        let Some(tool) = self.call(call_id).map(|call| call.tool.clone()) else { return };
        let Some((occurrence_id, hooks)) =
            self.ask_hooks(RunLifecycleHookPhase::AfterTool, Some((call_id, &tool)), out)
        else {
            return;
        };
        let end = content.floor_char_boundary(SHOWN_BYTES);
        let (shown, more) = (content.get(..end).unwrap_or_default().to_owned(), end < content.len());
        let Some(call) = self.round_mut().and_then(|round| round.call_mut(call_id)) else { return };
        if let CallState::Done(CallOutcome::Finished(result)) = &call.state {
            let result = result.clone();
            call.state = CallState::Reviewing(Box::new(Reviewing {
                occurrence_id,
                hooks,
                facts,
                result,
                content: shown,
                more,
                label,
            }));
        }
    }

    pub(super) fn on_hooks_answered(
        &mut self,
        answered: &HooksAnswered,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        match &mut self.phase {
            Phase::Running(Activity::Hooks(wait)) if wait.occurrence_id == answered.occurrence_id => {
                // Answered: there is nothing to stop any more, whatever follows.
                wait.answered = Some(answered.results.clone());
                let wait = wait.clone();
                self.settle_step(wait, at, out);
                Ok(())
            }
            Phase::Paused(Activity::Hooks(wait))
                if wait.occurrence_id == answered.occurrence_id && wait.answered.is_none() =>
            {
                wait.answered = Some(answered.results.clone());
                Ok(())
            }
            _ => self.settle_call(answered, at, out),
        }
    }

    /// Goes on with a step whose hooks have answered. The run is running.
    pub(super) fn settle_step(&mut self, wait: HookWait, at: Timestamp, out: &mut Vec<Action>) {
        let ruling = judge(wait.step.phase(), &wait.hooks, wait.answered.as_deref().unwrap_or_default());
        let superseded = matches!(wait.step, HookStep::BeforeDelivery(_)) && !self.queued.is_empty();
        match ruling.decision {
            HookDecision::Block | HookDecision::FailRun => self.end_by_hook(&ruling, at, out),
            HookDecision::RequestApproval | HookDecision::TransformPreview if !superseded => {
                self.ask_about_step(wait.step, ruling, at, out);
            }
            _ => self.take_step(wait.step, at, out),
        }
    }

    fn settle_call(&mut self, answered: &HooksAnswered, at: Timestamp, out: &mut Vec<Action>) -> Result<(), Rejected> {
        let waits = |state: &CallState| match state {
            CallState::Screening(screening) => screening.occurrence_id == answered.occurrence_id,
            CallState::Reviewing(reviewing) => reviewing.occurrence_id == answered.occurrence_id,
            _ => false,
        };
        let found = self.round().and_then(|round| {
            let index = round.calls.iter().position(|call| waits(&call.state))?;
            round.calls.get(index).map(|call| (index, call.clone()))
        });
        let Some((index, call)) = found else { return Err(self.reject("no such hooks are asked")) };
        let (state, ruling) = match call.state {
            CallState::Screening(screening) => {
                let ruling = judge(RunLifecycleHookPhase::BeforeTool, &screening.hooks, &answered.results);
                (self.screened(index, *screening, &ruling, at, out), ruling)
            }
            CallState::Reviewing(reviewing) => {
                let ruling = judge(RunLifecycleHookPhase::AfterTool, &reviewing.hooks, &answered.results);
                (CallState::Done(CallOutcome::Finished(reviewing.result)), ruling)
            }
            _ => return Err(self.reject("no such hooks are asked")),
        };
        if let Some(call) = self.round_mut().and_then(|round| round.calls.get_mut(index)) {
            call.state = state;
        }
        if ruling.decision == HookDecision::FailRun {
            self.end_by_hook(&ruling, at, out);
        } else {
            self.advance(at, out);
        }
        Ok(())
    }

    fn screened(
        &mut self,
        index: usize,
        screening: Screening,
        ruling: &Ruling,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> CallState {
        let Screening { verdict, mut reasons, facts, .. } = screening;
        match ruling.decision {
            HookDecision::Block => self.blocked(index, ruling),
            HookDecision::FailRun => super::round::not_run(FAILED, "not run: a hook ended the run".to_owned()),
            HookDecision::RequestApproval => {
                reasons.extend(ruling.reasons.iter().cloned());
                self.ask_person(index, Question::MayItRun, reasons, facts, at, out)
            }
            _ => self.passed(index, verdict, reasons, facts, at, out),
        }
    }

    /// The model is told who refused. Why is the hook's own text, which may quote anybody: the planner sees it as it sees untrusted results.
    fn blocked(&mut self, index: usize, ruling: &Ruling) -> CallState {
        let message = format!("{} refused this call; do not propose it again unchanged", ruling.deciders());
        let Some(call) = self.round().and_then(|round| round.calls.get(index)) else {
            return super::round::not_run(BLOCKED, message);
        };
        let call_id = call.call_id.clone();
        // Hooks see what references to variables stand for, so what they say may hold it.
        let about = call
            .references
            .iter()
            .filter_map(|reference| Variables(&self.readings).reading(reference.variable))
            .fold(self.seen(), |joined, reading| joined.join(&reading.label));
        let label = said_by(&ruling.hooks, &about);
        let mut reading = Reading {
            call_id: call_id.clone(),
            tool: "hook".to_owned(),
            server: None,
            class: OutputClass::whole(&label),
            label: label.clone(),
            source: SourceNaming::ChosenOtherwise,
            text: ruling.reasons.join("; "),
            data: None,
            suspicions: Vec::new(),
            variable: None,
        };
        let (shown, integrity) = self.presented(&mut reading, &Showing::ByMode, &call_id);
        self.readings.push(reading);
        CallState::Done(CallOutcome::NotRun {
            code: BLOCKED.to_owned(),
            message: format!("{message}\n{shown}"),
            label: Label { integrity, ..label },
        })
    }

    fn end_by_hook(&mut self, ruling: &Ruling, at: Timestamp, out: &mut Vec<Action>) {
        let code = if ruling.decision == HookDecision::FailRun { FAILED } else { BLOCKED };
        let verb = if ruling.decision == HookDecision::FailRun { "ended the run" } else { "refused to go on" };
        let message = format!("{} {verb}: {}", ruling.deciders(), ruling.reasons.join("; "));
        let ending =
            Ending { reason: TerminationReason::ApprovalDenied, detail: Some(detail(code, message)), answer: None };
        self.end_as(RunLifecyclePhase::Failed, ending, at, out);
    }

    fn ask_about_step(&mut self, step: HookStep, ruling: Ruling, at: Timestamp, out: &mut Vec<Action>) {
        let (question, tool, call_id, summary) = match (&step, ruling.decision) {
            (HookStep::BeforeRun, _) => (Question::MayGoOn, "palyra.run", "run", "begin this run"),
            (HookStep::BeforeDelivery(_), HookDecision::TransformPreview) => {
                (Question::ReplaceAnswer, "palyra.delivery", "delivery", "deliver another text instead of the answer")
            }
            (HookStep::BeforeDelivery(_), _) => {
                (Question::MayGoOn, "palyra.delivery", "delivery", "deliver the answer")
            }
        };
        let (arguments, proposed) = match &step {
            HookStep::BeforeRun => (json!({ "prompt": self.spec.prompt }), None),
            HookStep::BeforeDelivery(ending) => about_delivery(ending, &ruling),
        };
        let approval_id = approval_id(self.spec.run_id, call_id, self.counters.approvals, at);
        self.counters.approvals += 1;
        let timeout = self.spec.limits.approval_timeout_ms;
        let expires_at = (timeout > 0).then(|| at.plus(Duration::from_millis(timeout)));
        let canonical = crate::canonical::canonical_json(&arguments);
        out.push(Action::RequestApproval(Box::new(ApprovalRequest {
            approval_id,
            owner: self.spec.owner.clone(),
            call_id: call_id.to_owned(),
            subject: ApprovalSubject::Tool,
            risk: Risk::Medium,
            question,
            tool: tool.to_owned(),
            arguments,
            summary: summary.to_owned(),
            reasons: ruling.reasons,
            evidence: Vec::new(),
            offer: None,
            binding: Digest::of_parts(&[tool.as_bytes(), canonical.as_bytes()]),
            expires_at,
        })));
        let question = HookQuestion { approval_id, question, expires_at, step, proposed };
        self.enter(Phase::AskingForHook(Box::new(question)), at, out);
    }

    /// What a person said to it, if this is the question that is open.
    pub(super) fn on_hook_question_decided(
        &mut self,
        id: ApprovalId,
        decision: ApprovalDecision,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Option<()> {
        let Phase::AskingForHook(question) = &self.phase else { return None };
        if question.approval_id != id {
            return None;
        }
        let HookQuestion { question, step, proposed, .. } = *question.clone();
        let allowed = decision == ApprovalDecision::Allow;
        // Refusing another text is not refusing the answer: it is delivered as the model wrote it.
        if !allowed && question != Question::ReplaceAnswer {
            let message = match decision {
                ApprovalDecision::Timeout => "a hook wanted a person to agree, and nobody did in time",
                ApprovalDecision::Error => "a hook wanted a person to agree, and nobody could be asked",
                ApprovalDecision::Allow | ApprovalDecision::Deny => "a person refused what a hook had them asked about",
            };
            let ending = Ending {
                reason: TerminationReason::ApprovalDenied,
                detail: Some(detail("approval_denied", message.to_owned())),
                answer: None,
            };
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

    /// After a restart: hooks that had not answered are asked again, under the same occurrence id. Bindings may have changed meanwhile.
    pub(super) fn recover_step(&mut self, mut wait: HookWait, out: &mut Vec<Action>) -> HookWait {
        if wait.answered.is_none() {
            wait.hooks = self.ask_again(&wait.occurrence_id, wait.step.phase(), None, out);
        }
        wait
    }

    /// The same for a call. Returns the call's state.
    pub(super) fn recover_call(
        &mut self,
        index: usize,
        call_id: &str,
        tool: &str,
        state: CallState,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> CallState {
        match state {
            CallState::Screening(mut screening) => {
                let call = Some((call_id, tool));
                screening.hooks =
                    self.ask_again(&screening.occurrence_id, RunLifecycleHookPhase::BeforeTool, call, out);
                if screening.hooks.is_empty() {
                    let Screening { verdict, reasons, facts, .. } = *screening;
                    return self.passed(index, verdict, reasons, facts, at, out);
                }
                CallState::Screening(screening)
            }
            CallState::Reviewing(mut reviewing) => {
                let call = Some((call_id, tool));
                reviewing.hooks = self.ask_again(&reviewing.occurrence_id, RunLifecycleHookPhase::AfterTool, call, out);
                if reviewing.hooks.is_empty() {
                    return CallState::Done(CallOutcome::Finished(reviewing.result));
                }
                CallState::Reviewing(reviewing)
            }
            other => other,
        }
    }

    fn ask_again(
        &self,
        occurrence_id: &str,
        phase: RunLifecycleHookPhase,
        call: Option<(&str, &str)>,
        out: &mut Vec<Action>,
    ) -> Vec<String> {
        let hooks = self.hooks_of(phase, call.map(|(_, tool)| tool));
        if !hooks.is_empty() {
            out.push(Action::RunHooks {
                occurrence_id: occurrence_id.to_owned(),
                phase,
                call_id: call.map(|(call_id, _)| call_id.to_owned()),
                hooks: hooks.clone(),
            });
        }
        hooks
    }

    /// Takes back what a step of the run waits for, because it is not wanted any more.
    pub(super) fn abandon_step(&self, out: &mut Vec<Action>) {
        match &self.phase {
            Phase::Running(Activity::Hooks(wait)) | Phase::Paused(Activity::Hooks(wait)) if wait.answered.is_none() => {
                out.push(Action::StopHooks { occurrence_id: wait.occurrence_id.clone() });
            }
            Phase::AskingForHook(question) => {
                out.push(Action::WithdrawApproval { approval_id: question.approval_id });
            }
            _ => {}
        }
    }
}

/// The question about a delivery, and the answer that would be delivered instead.
fn about_delivery(ending: &Ending, ruling: &Ruling) -> (Value, Option<(String, Label)>) {
    let (answer, label) = ending.answer.clone().unwrap_or_else(|| (String::new(), Label::system()));
    match &ruling.text {
        None => (json!({ "answer": answer }), None),
        Some(text) => {
            let label = said_by(&ruling.hooks, &label);
            (json!({ "answer": answer, "proposed": text }), Some((text.clone(), label)))
        }
    }
}

/// The label of what hooks say about something: whatever it quotes, and nobody's word.
pub(crate) fn said_by(hooks: &[String], about: &Label) -> Label {
    let own = Label::new(Integrity::Untrusted, Confidentiality::Public);
    hooks.iter().fold(about.join(&own), |label, hook| label.from_source(format!("hook:{hook}")))
}
