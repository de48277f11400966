//! Hooks in the life of a run.
//!
//! The machine knows which bindings there are because it was told (`HooksBound`), asks for them by `RunHooks` and weighs what they said when
//! `HooksAnswered` arrives. Without a binding for a phase nothing is asked and nothing is recorded.
//!
//! This file holds what all phases share and the steps of the run itself; `screening` holds calls, `hook_questions` what a person is asked.
//!
//! INVARIANT: a step that waits for hooks (`Activity::Hooks`, `Screening`, `Reviewing`) has its `RunHooks` on the tape, and after a restart asks again under
//! the same occurrence id. What hooks said while the run was held counts when it goes on.

use palyra_common::{
    Confidentiality, Digest, HookDecision, Integrity, Label, RunLifecycleHookPhase, RunLifecyclePhase,
    TerminationReason, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::state::{Activity, Ending, Phase};
use super::turns::detail;
use super::{Machine, Rejected};
use crate::hooks::{HookBindingRecord, HookResult, HooksAnswered, Ruling, judge};

/// Detail code of a run, and code of a call, that a hook refused.
pub(super) const BLOCKED: &str = "hook_blocked";
/// Detail code of a run that a hook ended.
pub(super) const FAILED: &str = "hook_failed_run";

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
    pub(super) fn ask_hooks(
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

    pub(super) fn take_step(&mut self, step: HookStep, at: Timestamp, out: &mut Vec<Action>) {
        match step {
            HookStep::BeforeRun => self.next_turn(at, out),
            // Somebody wrote meanwhile: the answer was not the last word.
            HookStep::BeforeDelivery(_) if !self.queued.is_empty() => self.next_turn(at, out),
            HookStep::BeforeDelivery(ending) => {
                let phase = ending.delivered_in();
                if !self.ask_about_changes(&ending, at, out) {
                    self.enter_terminal(phase, ending, at, out);
                }
            }
        }
    }

    /// After the fact; called while the terminal phase is entered.
    pub(super) fn ask_after_run(&mut self, out: &mut Vec<Action>) {
        let _ = self.ask_hooks(RunLifecycleHookPhase::AfterRun, None, out);
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

    pub(super) fn end_by_hook(&mut self, ruling: &Ruling, at: Timestamp, out: &mut Vec<Action>) {
        let code = if ruling.decision == HookDecision::FailRun { FAILED } else { BLOCKED };
        let verb = if ruling.decision == HookDecision::FailRun { "ended the run" } else { "refused to go on" };
        let message = format!("{} {verb}: {}", ruling.deciders(), ruling.reasons.join("; "));
        let ending = Ending::without_answer(TerminationReason::ApprovalDenied, Some(detail(code, message)));
        self.end_as(RunLifecyclePhase::Failed, ending, at, out);
    }

    /// After a restart: hooks that had not answered are asked again, under the same occurrence id. Bindings may have changed meanwhile.
    pub(super) fn recover_step(&mut self, mut wait: HookWait, out: &mut Vec<Action>) -> HookWait {
        if wait.answered.is_none() {
            wait.hooks = self.ask_again(&wait.occurrence_id, wait.step.phase(), None, out);
        }
        wait
    }

    pub(super) fn ask_again(
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
            Phase::Running(Activity::Judging(wait)) | Phase::Paused(Activity::Judging(wait))
                if wait.judged.is_none() =>
            {
                out.push(Action::StopJudge { judgement: wait.judgement });
            }
            Phase::AskingForHook(question) => {
                out.push(Action::WithdrawApproval { approval_id: question.approval_id });
            }
            _ => {}
        }
    }
}

/// The label of what hooks say about something: whatever it quotes, and nobody's word.
pub(crate) fn said_by(hooks: &[String], about: &Label) -> Label {
    let own = Label::new(Integrity::Untrusted, Confidentiality::Public);
    hooks.iter().fold(about.join(&own), |label, hook| label.from_source(format!("hook:{hook}")))
}
