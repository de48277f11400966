//! Calls that hooks look at: before anything comes of them, and after they have finished.
//!
//! A call is screened after policy has let it pass (outright, or if a person agrees) and before anybody is asked or anything runs, so that a person sees
//! one question with all the reasons for it. Hooks cannot permit: what policy denied never reaches them. They cannot change arguments either.
//!
//! A finished call is reviewed before the next exclusive call begins, so that a hook that ends the run ends it before anything else happens.

use palyra_common::{HookDecision, Label, OutputClass, RunLifecycleHookPhase, Timestamp, ToolVerdict};
use palyra_flow::{Reading, SourceNaming, Variables};
use palyra_models::REFUSAL_ADVICE;
use serde::{Deserialize, Serialize};

use super::action::{Action, Question};
use super::hooks::said_by;
use super::input::{CallFacts, CallResult, Decided, Showing};
use super::round::{NotRun, Refusal};
use super::state::{CallOutcome, CallState};
use super::{Machine, Rejected};
use crate::hooks::{HooksAnswered, Ruling, judge};

/// Most of a result that hooks are shown, in bytes: a hook that needs more is told that there is more.
const SHOWN_BYTES: usize = 16 << 10;

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
    /// What becomes of a call that policy lets pass: hooks look at it first, if there are any.
    pub(super) fn screen(&mut self, index: usize, decided: Decided, at: Timestamp, out: &mut Vec<Action>) -> CallState {
        let Some((call_id, tool)) =
            self.round().and_then(|round| round.calls.get(index)).map(|call| (call.call_id.clone(), call.tool.clone()))
        else {
            return self.refuse(index, Refusal::internal("the call disappeared"), out);
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
            if !self.spend(&facts) {
                let reason = "another call of the same turn has used up what the run said it would do".to_owned();
                return self.ask_person(index, Question::MayItRun, vec![reason], facts, at, out);
            }
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

    pub(super) fn settle_call(
        &mut self,
        answered: &HooksAnswered,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
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
            HookDecision::Block => self.blocked(index, ruling, out),
            HookDecision::FailRun => {
                let message = "not run: a hook ended the run".to_owned();
                self.refuse(index, Refusal::new(NotRun::HookFailedRun, message), out)
            }
            HookDecision::RequestApproval => {
                reasons.extend(ruling.reasons.iter().cloned());
                self.ask_person(index, Question::MayItRun, reasons, facts, at, out)
            }
            _ => self.passed(index, verdict, reasons, facts, at, out),
        }
    }

    /// The model is told who refused. Why is the hook's own text, which may quote anybody: the planner sees it as it sees untrusted results.
    fn blocked(&mut self, index: usize, ruling: &Ruling, out: &mut Vec<Action>) -> CallState {
        let message = format!("{} refused this call; {REFUSAL_ADVICE} unchanged", ruling.deciders());
        let mut refusal = Refusal::new(NotRun::HookBlocked, ruling.reasons.join("; "));
        let Some(call) = self.round().and_then(|round| round.calls.get(index)) else {
            return self.refuse(index, refusal, out);
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
            given: false,
        };
        let (shown, integrity) = self.presented(&mut reading, &Showing::ByMode, &call_id);
        self.readings.push(reading);
        refusal.told = format!("{message}\n{shown}");
        refusal.error_label = label.clone();
        refusal.label = Label { integrity, ..label };
        self.refuse(index, refusal, out)
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
}
