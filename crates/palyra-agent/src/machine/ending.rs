//! Stopping: cancellation, holding, lapse of time, restarts.
//!
//! A run that has to end first asks its executing calls to stop and waits for their outcomes: every intent gets its outcome before the
//! terminal record. The driver answers within its grace period even if a tool does not.

use palyra_budget::MicroUsd;
use palyra_common::{RunLifecyclePhase, TerminationReason, Timestamp};

use super::action::Action;
use super::round::{NotRun, Refusal};
use super::state::{Activity, CallState, Ending, Phase, ToolRound};
use super::turns::detail;
use super::{Machine, Rejected};
use crate::spec::ModelChoice;

impl Machine {
    pub(super) fn on_cancel(
        &mut self,
        reason: Option<String>,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        if matches!(&self.phase, Phase::Running(Activity::Stopping { .. } | Activity::TakingBack(_))) {
            return Err(self.reject("it is ending"));
        }
        let message = reason.unwrap_or_else(|| "cancelled".to_owned());
        self.end_now(
            Ending::without_answer(TerminationReason::Cancellation, Some(detail("cancelled", message))),
            at,
            out,
        );
        Ok(())
    }

    pub(super) fn on_pause(&mut self, at: Timestamp, out: &mut Vec<Action>) -> Result<(), Rejected> {
        match std::mem::replace(&mut self.phase, Phase::Queued) {
            Phase::Running(Activity::Stopping { round, ending, phase }) => {
                self.phase = Phase::Running(Activity::Stopping { round, ending, phase });
                Err(self.reject("it is ending"))
            }
            Phase::Running(Activity::TakingBack(taking_back)) => {
                self.phase = Phase::Running(Activity::TakingBack(taking_back));
                Err(self.reject("it is ending"))
            }
            Phase::Running(activity) => {
                if matches!(activity, Activity::Model { .. }) {
                    out.push(Action::StopModel { turn: self.counters.turns });
                }
                self.phase = Phase::Running(activity.clone());
                self.enter(Phase::Paused(activity), at, out);
                Ok(())
            }
            Phase::WaitingForApproval(round) => {
                self.phase = Phase::WaitingForApproval(ToolRound::default());
                self.enter(Phase::Paused(Activity::Tools(round)), at, out);
                Ok(())
            }
            Phase::Paused(Activity::HandedBack(round)) => {
                // The public phase stays; what it waits for is another matter, so it is told.
                self.phase = Phase::Paused(Activity::Tools(round));
                out.push(Action::Status(self.status()));
                Ok(())
            }
            other => {
                self.phase = other;
                Err(self.reject("only a running run can be paused"))
            }
        }
    }

    pub(super) fn on_resume(
        &mut self,
        over_budget: Option<MicroUsd>,
        model: Option<Box<ModelChoice>>,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        // Before anything is planned: how much fits is a matter of the model.
        let former = model.map(|model| std::mem::replace(&mut self.spec.model, *model));
        let resumed = self.go_on(over_budget, at, out);
        if let (Err(_), Some(former)) = (&resumed, former) {
            self.spec.model = former;
        }
        resumed
    }

    fn go_on(&mut self, over_budget: Option<MicroUsd>, at: Timestamp, out: &mut Vec<Action>) -> Result<(), Rejected> {
        if let (true, Phase::Failed(ending)) = (self.may_be_taken_up(), &self.phase) {
            let ending = ending.clone();
            return self.take_up(ending, over_budget, at, out);
        }
        if over_budget.is_some() {
            return Err(self.reject("it did not stop at a budget"));
        }
        let Phase::Paused(activity) = self.phase.clone() else {
            return Err(self.reject("it is not paused"));
        };
        if self.begins_anew(&activity) {
            self.enter(Phase::Running(activity), at, out);
            self.on_recovered(at, out);
            return Ok(());
        }
        match activity {
            Activity::Model { attempt } => self.call_model(attempt + 1, at, out),
            Activity::Compacting { replaces } => {
                self.enter(Phase::Running(Activity::Compacting { replaces }), at, out);
                out.push(Action::Compact { replaces, tokens: crate::context::tokens(&self.spec, &self.items) });
            }
            Activity::Hooks(wait) => {
                let answered = wait.answered.is_some();
                self.enter(Phase::Running(Activity::Hooks(wait.clone())), at, out);
                if answered {
                    self.settle_step(wait, at, out);
                }
            }
            Activity::Judging(wait) => {
                self.enter(Phase::Running(Activity::Judging(wait)), at, out);
                self.settle_verdict(at, out);
            }
            Activity::TakingBack(taking_back) => {
                self.enter(Phase::Running(Activity::TakingBack(taking_back)), at, out);
                out.push(self.take_back());
            }
            Activity::HandedBack(_) => return Err(self.reject("it waits for the results of its client's tools")),
            Activity::Tools(round) => {
                self.enter(Phase::Running(Activity::Tools(round)), at, out);
                self.advance(at, out);
            }
            Activity::Stopping { round, ending, phase } => {
                self.enter(Phase::Running(Activity::Stopping { round, ending, phase }), at, out);
                self.advance(at, out);
            }
        }
        Ok(())
    }

    pub(super) fn on_tick(&mut self, at: Timestamp, out: &mut Vec<Action>) -> Result<(), Rejected> {
        if self.work_deadline().is_none_or(|deadline| deadline > at) {
            return Err(self.reject("no deadline has passed"));
        }
        let (phase, code, message) = if matches!(self.phase, Phase::Running(_)) {
            let limit = self.spec.limits.wall_clock_ms / 1000;
            (RunLifecyclePhase::Failed, "wall_clock", format!("the limit of {limit} s of working time was reached"))
        } else {
            let limit = self.spec.limits.expire_after_ms / 1000;
            (RunLifecyclePhase::Expired, "run_expired", format!("nothing happened for {limit} s"))
        };
        let ending = Ending::without_answer(TerminationReason::WallClock, Some(detail(code, message)));
        self.end_as(phase, ending, at, out);
        Ok(())
    }

    /// Whether a restart cut into something, so that the machine has to be told of it. A run that waits, or whose held work needs nobody, goes on waiting
    /// without a word on its tape.
    pub(crate) fn is_interrupted_by_restart(&self) -> bool {
        match &self.phase {
            Phase::Running(_) => true,
            // What was under way begins anew when it is resumed.
            Phase::Paused(_) if self.restored => false,
            Phase::Paused(activity) => match activity {
                Activity::Tools(_) | Activity::Hooks(_) | Activity::Stopping { .. } => true,
                Activity::Judging(wait) => wait.judged.is_none(),
                // Never held.
                Activity::TakingBack(_) => true,
                Activity::Model { .. } | Activity::Compacting { .. } | Activity::HandedBack(_) => false,
            },
            Phase::Queued
            | Phase::WaitingForApproval(_)
            | Phase::AskingForMoney(_)
            | Phase::AskingForHook(_)
            | Phase::Completed(_)
            | Phase::Failed(_)
            | Phase::Aborted(_)
            | Phase::Expired(_) => false,
        }
    }

    pub(super) fn on_recovered(&mut self, at: Timestamp, out: &mut Vec<Action>) {
        self.restored = false;
        // The time the daemon was down is nobody's working time.
        if matches!(self.phase, Phase::Running(_)) {
            self.phase_since = at;
        }
        match self.phase.clone() {
            Phase::Running(Activity::Model { attempt }) => self.call_model(attempt + 1, at, out),
            Phase::Running(Activity::Compacting { replaces }) => {
                out.push(Action::Compact { replaces, tokens: crate::context::tokens(&self.spec, &self.items) });
            }
            Phase::Running(Activity::Tools(round)) => {
                let round = self.recover_round(round, at, out);
                self.phase = Phase::Running(Activity::Tools(round));
                self.advance(at, out);
            }
            Phase::Running(Activity::Stopping { round, ending, phase }) => {
                let round = forget_executing(round, out);
                self.phase = Phase::Running(Activity::Stopping { round, ending, phase });
                self.advance(at, out);
            }
            Phase::Paused(Activity::Tools(round)) => {
                let round = self.recover_round(round, at, out);
                self.phase = Phase::Paused(Activity::Tools(round));
            }
            Phase::Running(Activity::Hooks(wait)) => {
                let mut wait = self.recover_step(wait, out);
                let nobody_left = wait.hooks.is_empty();
                if nobody_left {
                    wait.answered = Some(Vec::new());
                }
                self.phase = Phase::Running(Activity::Hooks(wait.clone()));
                if nobody_left {
                    self.settle_step(wait, at, out);
                }
            }
            Phase::Running(Activity::Judging(wait)) | Phase::Paused(Activity::Judging(wait))
                if wait.judged.is_none() =>
            {
                out.push(Action::Judge { judgement: wait.judgement });
            }
            Phase::Running(Activity::TakingBack(_)) => out.push(self.take_back()),
            Phase::Paused(Activity::Hooks(wait)) => {
                let mut wait = self.recover_step(wait, out);
                if wait.hooks.is_empty() {
                    wait.answered = Some(Vec::new());
                }
                self.phase = Phase::Paused(Activity::Hooks(wait));
            }
            _ => {}
        }
    }

    /// Ends the run in the phase that belongs to the reason.
    pub(super) fn end_now(&mut self, ending: Ending, at: Timestamp, out: &mut Vec<Action>) {
        let phase = match ending.reason {
            TerminationReason::FinalAnswer => ending.delivered_in(),
            TerminationReason::Cancellation | TerminationReason::ApprovalDenied => RunLifecyclePhase::Aborted,
            TerminationReason::MaxTurns
            | TerminationReason::MaxToolCalls
            | TerminationReason::WallClock
            | TerminationReason::ProviderError
            | TerminationReason::ContextBudgetExhausted
            | TerminationReason::BudgetExceeded => RunLifecyclePhase::Failed,
        };
        self.end_as(phase, ending, at, out);
    }

    pub(super) fn end_as(&mut self, phase: RunLifecyclePhase, ending: Ending, at: Timestamp, out: &mut Vec<Action>) {
        let model_is_speaking = matches!(self.phase, Phase::Running(Activity::Model { .. }));
        // A finished or failed call needs no stop; only cancellation and deadlines cut into a turn.
        if model_is_speaking && matches!(ending.reason, TerminationReason::Cancellation | TerminationReason::WallClock)
        {
            out.push(Action::StopModel { turn: self.counters.turns });
        }
        self.abandon_step(out);
        let round = self.round().cloned().unwrap_or_default();
        let round = self.abandon_pending(round, NotRun::RunEnding, "not run: the run is ending", out);
        if round.is_executing() {
            self.enter(Phase::Running(Activity::Stopping { round, ending, phase }), at, out);
        } else {
            self.enter_terminal(phase, ending, at, out);
        }
    }

    pub(super) fn enter_terminal(
        &mut self,
        phase: RunLifecyclePhase,
        ending: Ending,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) {
        if self.takes_back_first(phase, &ending, at, out) {
            return;
        }
        let phase = match phase {
            RunLifecyclePhase::Completed => Phase::Completed(ending),
            RunLifecyclePhase::Aborted => Phase::Aborted(ending),
            RunLifecyclePhase::Expired => Phase::Expired(ending),
            _ => Phase::Failed(ending),
        };
        self.enter(phase, at, out);
    }
}

/// Calls that were executing when the daemon stopped and will not be waited for.
pub(super) fn forget_executing(mut round: ToolRound, out: &mut Vec<Action>) -> ToolRound {
    let message = "outcome unknown: the daemon stopped".to_owned();
    let refusal = Refusal::new(NotRun::OutcomeUnknown, message);
    for call in &mut round.calls {
        if matches!(call.state, CallState::Executing { .. }) {
            call.state = refusal.clone().settle(&call.call_id, &call.tool, out);
        }
    }
    round
}
