//! The run machine: a pure function from (state, input) to (state, actions).
//!
//! One [`Machine`] is one run. It does no I/O, reads no clock and draws no random number: time arrives with each input and ids are derived
//! from the run id. Feeding the same inputs again therefore gives the same actions, byte for byte, and replay, crash recovery and property
//! tests are all the same thing.
//!
//! - [`Machine::accept`] makes a machine from its first input.
//! - [`Machine::step`] applies one more. An input that makes no sense now is [`Rejected`] and changes nothing; a machine in a terminal phase
//!   rejects everything, unless the model or the money ran out: such a run can be resumed.
//! - [`Machine::next_deadline`] says when time alone will matter, [`Machine::due`] which inputs it then makes.
//!
//! INVARIANT: a call is `Executing` exactly from its `Execute` action to its `ToolFinished` input (or to a `Recovered` or `Restored` that turns it into a
//! question). A run ends only when no call is executing, so that every intent has an outcome on the tape. A call of a client's tool is never executing: it is
//! `HandedBack` from its `HandBack` action to its `ToolFinished` input, over restarts too.
//!
//! The files: `input`, `action`, `state` are the vocabulary; `turns` begins and ends model turns; `summaries` puts summaries into the context and takes them back; `round` schedules calls; `approvals` asks
//! people, `displayed` says what they are shown and binds their answers to it, `deadlines` moves deadlines when the clock was set or the machine was suspended, `money` asks them for more; `hooks`, `screening` and `hook_questions` let plugins look at steps and calls; `objective` has answers judged; `changes` has people accept what takes effect later; `ending` ends runs; `restored` holds those of a restored backup; `looping` notices circles; `readings` keeps what
//! was read, with its labels; `offering` keeps the tools that the run came to need, and its plan.

mod action;
mod approvals;
mod changes;
mod deadlines;
mod displayed;
mod ending;
mod hook_questions;
mod hooks;
mod input;
mod looping;
mod money;
mod objective;
mod offering;
mod readings;
mod restored;
mod round;
mod screening;
mod state;
mod strict;
mod summaries;
mod turns;

pub use action::{Action, ApprovalRequest, Question, StatusChange};
pub(crate) use approvals::MAY_HAVE_HAPPENED;
pub use changes::{HeldFile, TakingBack, TookBack};
pub use deadlines::AWAKE_GRACE;
pub use hook_questions::HookQuestion;
pub(crate) use hooks::said_by;
pub use hooks::{HookStep, HookWait};
pub use input::{
    CallFacts, CallResult, ClockGap, CompactionAccount, Cost, Decided, Input, LostTry, ModelFailure, ModelTurn, Offer,
    Remedy, Showing,
};
pub use objective::{Found, JudgeWait, Judged};
pub(crate) use readings::{Half, withheld};
pub use screening::{Reviewing, Screening};
pub use state::{
    Activity, AnswerVerdict, Call, CallOutcome, CallState, Counters, Ending, MoneyQuestion, Phase, ToolRound,
};

use std::time::Duration;

use palyra_common::{ApprovalDecision, ApprovalScope, RunLifecyclePhase, TerminationReason, Timestamp};
use palyra_flow::{Mandates, Reading};
use palyra_policy::Signals;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::changes::ChangeSet;
use self::looping::UselessTurns;
use self::objective::ObjectiveProgress;
use self::state::{QueuedMessage, SeenCalls, Transcript};
use crate::context::Item;
use crate::hooks::HookBindingRecord;
use crate::own_tools::Plan;
use crate::spec::RunSpec;

/// Detail code of a run that waits for the results of its client's tools.
pub const CLIENT_TOOLS_PENDING: &str = "client_tools_pending";

/// An input that makes no sense in the present state. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a run that is {phase} does not take this: {why}")]
pub struct Rejected {
    /// The phase it is in.
    pub phase: RunLifecyclePhase,
    /// Why not.
    pub why: &'static str,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    spec: RunSpec,
    phase: Phase,
    items: Transcript,
    counters: Counters,
    seen: SeenCalls,
    #[serde(default, skip_serializing_if = "UselessTurns::is_empty")]
    useless: UselessTurns,
    queued: Vec<QueuedMessage>,
    /// Messages that are in the context and that no model has been asked with yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unread: Vec<String>,
    /// Digests of the proposals that a person refused.
    refused: Vec<palyra_common::Digest>,
    /// What tools gave back. Never forgotten, also when the context is summarised.
    readings: Vec<Reading>,
    /// Signs in them that something tries to give orders.
    #[serde(default, skip_serializing_if = "Signals::is_empty")]
    signals: Signals,
    /// What people wrote to the run while it was at work, and the values they approved.
    trusted: Vec<String>,
    /// What the run is meant to do.
    mandates: Mandates,
    /// Whether a strict run has carried out a call with what its planner has not seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    acted_blindly: bool,
    /// Whether the planner was shown numbers, dates or the shape of what anyone may have written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    was_told_something: bool,
    created_at: Timestamp,
    /// When the present phase began.
    phase_since: Timestamp,
    /// Whom to ask at the steps of the run, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hooks: Vec<HookBindingRecord>,
    /// How often hooks were asked: what makes the ids of occurrences differ.
    #[serde(default, skip_serializing_if = "is_zero")]
    hook_occurrences: u32,
    /// How far it is with its objective.
    #[serde(default, skip_serializing_if = "ObjectiveProgress::is_nothing")]
    objective: ObjectiveProgress,
    /// Tools that the run came to need, beside those that every run is offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tools_in_use: Vec<String>,
    /// The planner's list of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
    /// What went wrong in the newest call, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_failure: Option<String>,
    /// What it changed that takes effect later, and that nobody has accepted.
    #[serde(default, skip_serializing_if = "ChangeSet::is_empty")]
    changes: ChangeSet,
    /// How often it was taken back.
    #[serde(default, skip_serializing_if = "is_zero")]
    take_backs: u32,
    /// Whether it is held since its state was restored from a backup, so that what was under way begins anew when it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    restored: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde calls")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Machine {
    /// Accepts a run: its first step.
    #[must_use]
    pub fn accept(spec: RunSpec, at: Timestamp) -> Self {
        let mut machine = Self {
            phase: Phase::Queued,
            items: Vec::new(),
            counters: Counters {
                turns: 0,
                tool_calls: 0,
                input_tokens: 0,
                output_tokens: 0,
                approvals: 0,
                active_ms: 0,
            },
            seen: SeenCalls::new(),
            useless: UselessTurns::default(),
            queued: Vec::new(),
            unread: Vec::new(),
            refused: Vec::new(),
            readings: readings::of_history(&spec),
            signals: Signals::default(),
            trusted: spec.objective.iter().map(|objective| objective.text.clone()).collect(),
            mandates: Mandates::default(),
            acted_blindly: false,
            was_told_something: false,
            spec,
            created_at: at,
            phase_since: at,
            hooks: Vec::new(),
            hook_occurrences: 0,
            objective: ObjectiveProgress::default(),
            tools_in_use: Vec::new(),
            plan: None,
            last_failure: None,
            changes: ChangeSet::new(),
            take_backs: 0,
            restored: false,
        };
        let task = machine.task();
        machine.items.push(task);
        machine
    }

    /// Applies one input.
    ///
    /// # Errors
    /// [`Rejected`] when the input makes no sense now; the machine is then unchanged.
    pub fn step(&mut self, input: Input, at: Timestamp) -> Result<Vec<Action>, Rejected> {
        let mut out = Vec::new();
        let is_for_resumable = matches!(input, Input::Resume { .. } | Input::CompactionReverted { .. });
        if self.is_over() && !(self.may_be_taken_up() && is_for_resumable) {
            return Err(self.reject("it is over"));
        }
        match input {
            Input::Accepted(_) => return Err(self.reject("it was accepted before")),
            Input::Started => self.on_started(at, &mut out)?,
            Input::ModelDelta { turn, .. } => self.on_model_delta(turn)?,
            Input::ModelTurnFinished(turn) => self.on_turn_finished(turn, at, &mut out)?,
            Input::ModelFailed(failure) => self.on_model_failed(failure, at, &mut out)?,
            Input::BudgetRefused { turn, attempt, error, .. } => {
                self.on_budget_refused(turn, attempt, *error, at, &mut out)?;
            }
            Input::Decided(decided) => self.on_decided(*decided, at, &mut out)?,
            Input::ApprovalDecided { approval_id, decision, reason, .. } => {
                self.on_approval_decided(approval_id, decision, reason.as_deref(), at, &mut out)?;
            }
            Input::ToolBegun { call_id } => self.on_tool_begun(&call_id)?,
            Input::ToolFinished { call_id, result, .. } => self.on_tool_finished(&call_id, result, at, &mut out)?,
            Input::Compacted { replaces, summary, .. } => self.on_compacted(replaces, summary, at, &mut out)?,
            Input::CompactionReverted { originals, .. } => self.on_compaction_reverted(originals)?,
            Input::EnvelopeEdited { add, remove, .. } => self.on_envelope_edited(add, &remove),
            Input::UserMessage { text, mode } => self.on_user_message(text, mode, at, &mut out)?,
            Input::Cancel { reason, .. } => self.on_cancel(reason, at, &mut out)?,
            Input::Pause { .. } => self.on_pause(at, &mut out)?,
            Input::Resume { over_budget, model, .. } => self.on_resume(over_budget, model, at, &mut out)?,
            Input::Tick => self.on_tick(at, &mut out)?,
            Input::ClockAdjusted { by_ms, gap } => self.on_clock_adjusted(by_ms, gap, at),
            Input::Recovered => self.on_recovered(at, &mut out),
            Input::Restored => self.on_restored(at, &mut out),
            Input::HooksBound { bindings } => self.on_hooks_bound(bindings),
            Input::HooksAnswered(answered) => self.on_hooks_answered(&answered, at, &mut out)?,
            Input::Judged(judged) => self.on_judged(*judged, at, &mut out)?,
            Input::TookBack(took_back) => self.on_took_back(&took_back, at, &mut out)?,
        }
        Ok(out)
    }

    /// When the driver has to ask [`Machine::due`] again, if ever.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let approval = match &self.phase {
            Phase::AskingForMoney(question) => question.expires_at,
            Phase::AskingForHook(question) => question.expires_at,
            _ => self.round().and_then(Self::earliest_expiry),
        };
        self.work_deadline().into_iter().chain(approval).min()
    }

    /// The inputs that the passing of time has made due: lapsed approvals, or a tick.
    #[must_use]
    pub fn due(&self, at: Timestamp) -> Vec<Input> {
        let lapsed = self.lapsed_approvals(at);
        if !lapsed.is_empty() {
            return lapsed
                .into_iter()
                .map(|approval_id| Input::ApprovalDecided {
                    approval_id,
                    decision: ApprovalDecision::Timeout,
                    scope: ApprovalScope::Once,
                    until: None,
                    by: "palyra".to_owned(),
                    via: None,
                    reason: None,
                })
                .collect();
        }
        if self.work_deadline().is_some_and(|deadline| deadline <= at) { vec![Input::Tick] } else { Vec::new() }
    }

    /// When the run has worked or lain idle for too long.
    fn work_deadline(&self) -> Option<Timestamp> {
        let limits = &self.spec.limits;
        let after = |millis: u64| self.phase_since.plus(Duration::from_millis(millis));
        match &self.phase {
            Phase::Queued
            | Phase::Paused(_)
            | Phase::WaitingForApproval(_)
            | Phase::AskingForMoney(_)
            | Phase::AskingForHook(_) => (limits.expire_after_ms > 0).then(|| after(limits.expire_after_ms)),
            Phase::Running(Activity::Stopping { .. } | Activity::TakingBack(_)) => None,
            Phase::Running(_) => Some(after(limits.wall_clock_ms.saturating_sub(self.counters.active_ms))),
            Phase::Completed(_) | Phase::Failed(_) | Phase::Aborted(_) | Phase::Expired(_) => None,
        }
    }

    /// The public phase.
    #[must_use]
    pub fn phase(&self) -> RunLifecyclePhase {
        self.phase.lifecycle()
    }

    /// The phase with what it holds.
    #[must_use]
    pub fn state(&self) -> &Phase {
        &self.phase
    }

    /// Whether the run is over for good.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase().is_terminal()
    }

    /// Whether a run that is over can go on where it stopped: nothing that it did stands in the way, only its model or its budget did.
    #[must_use]
    pub fn may_be_taken_up(&self) -> bool {
        let stopped =
            |end: &Ending| matches!(end.reason, TerminationReason::ProviderError | TerminationReason::BudgetExceeded);
        matches!(&self.phase, Phase::Failed(end) if stopped(end))
    }

    /// What people wrote to the run and no model has been asked with, oldest first.
    pub fn undelivered(&self) -> impl Iterator<Item = &str> {
        self.unread.iter().map(String::as_str).chain(self.queued.iter().map(|message| message.text.as_str()))
    }

    /// When it was accepted.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// What the run was asked to do.
    #[must_use]
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// What was said and done so far, as the model sees it.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Counts of what it used.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn reject(&self, why: &'static str) -> Rejected {
        Rejected { phase: self.phase(), why }
    }

    /// Moves to another phase, keeps the account of working time, and tells the world if the public phase changed.
    fn enter(&mut self, phase: Phase, at: Timestamp, out: &mut Vec<Action>) {
        let before = self.phase.lifecycle();
        let after = phase.lifecycle();
        self.phase = phase;
        if before == after {
            return;
        }
        if before == RunLifecyclePhase::Running {
            let worked = u64::try_from(at.since(self.phase_since).as_millis()).unwrap_or(u64::MAX);
            self.counters.active_ms = self.counters.active_ms.saturating_add(worked);
        }
        self.phase_since = at;
        if after.is_terminal() {
            // Before the news, which stays the last record of its commit; carried out after it, like everything.
            self.ask_after_run(out);
        }
        // The `started` record is itself the news that the run is running.
        if before != RunLifecyclePhase::Queued || after != RunLifecyclePhase::Running {
            out.push(Action::Status(self.status()));
        }
    }

    fn status(&self) -> StatusChange {
        match &self.phase {
            Phase::Completed(end) | Phase::Failed(end) | Phase::Aborted(end) | Phase::Expired(end) => StatusChange {
                phase: self.phase(),
                reason: Some(end.reason),
                detail: end.detail.clone(),
                answer: end.answer.as_ref().map(|(answer, _)| answer.clone()),
                label: end.answer.as_ref().map(|(_, label)| label.clone()),
            },
            Phase::Paused(Activity::HandedBack(_)) => StatusChange {
                phase: self.phase(),
                reason: None,
                detail: Some(turns::detail(
                    CLIENT_TOOLS_PENDING,
                    "the client's tools were called, and their results are awaited".to_owned(),
                )),
                answer: None,
                label: None,
            },
            Phase::Paused(_) if self.restored => StatusChange {
                phase: self.phase(),
                reason: None,
                detail: Some(turns::detail(
                    restored::RESTORED,
                    "its state was restored from a backup; check what happened since, then resume it".to_owned(),
                )),
                answer: None,
                label: None,
            },
            _ => StatusChange { phase: self.phase(), reason: None, detail: None, answer: None, label: None },
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "honesty_tests.rs"]
mod honesty_tests;

#[cfg(test)]
#[path = "interruption_tests.rs"]
mod interruption_tests;

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod hooks_tests;

#[cfg(test)]
#[path = "machine_properties.rs"]
mod properties;
