//! Runs of a restored backup.
//!
//! What happened after the backup was made is not on the tape, not even whether a call that had only been intended was made meanwhile. So nothing goes on by itself: the
//! run is held, a call that was executing and may not be repeated becomes a question, and everything else that was under way begins again when a person resumes the run.

use palyra_common::Timestamp;
use palyra_tools::Repeatability;

use super::Machine;
use super::action::Action;
use super::ending::forget_executing;
use super::round::Loss;
use super::state::{Activity, CallState, Phase, ToolRound};

/// Detail code of a run that is held because its state was restored from a backup.
pub(super) const RESTORED: &str = "restored_from_backup";

impl Machine {
    /// Whether the machine has to be told that its state was restored: it would go on otherwise, or already waits for something that is gone.
    pub(crate) fn is_interrupted_by_restore(&self) -> bool {
        match &self.phase {
            Phase::Running(_) | Phase::WaitingForApproval(_) => true,
            Phase::Paused(activity) => match activity {
                Activity::HandedBack(_) => true,
                Activity::Tools(_)
                | Activity::Hooks(_)
                | Activity::Judging(_)
                | Activity::TakingBack(_)
                | Activity::Stopping { .. } => !self.restored,
                Activity::Model { .. } | Activity::Compacting { .. } => false,
            },
            // A person's answer decides whether these go on.
            Phase::AskingForMoney(_) | Phase::AskingForHook(_) => false,
            Phase::Queued | Phase::Completed(_) | Phase::Failed(_) | Phase::Aborted(_) | Phase::Expired(_) => false,
        }
    }

    pub(super) fn on_restored(&mut self, at: Timestamp, out: &mut Vec<Action>) {
        // The time between the backup and now is nobody's working time.
        if matches!(self.phase, Phase::Running(_)) {
            self.phase_since = at;
        }
        let held = match self.phase.clone() {
            Phase::Running(Activity::Stopping { round, ending, phase })
            | Phase::Paused(Activity::Stopping { round, ending, phase }) => {
                let round = forget_executing(round, out);
                self.phase = Phase::Running(Activity::Stopping { round, ending, phase });
                self.advance(at, out);
                return;
            }
            Phase::Running(Activity::Tools(round))
            | Phase::WaitingForApproval(round)
            | Phase::Paused(Activity::Tools(round) | Activity::HandedBack(round)) => {
                Activity::Tools(self.hold_round(round, at, out))
            }
            Phase::Running(activity) | Phase::Paused(activity) => activity,
            Phase::Queued
            | Phase::AskingForMoney(_)
            | Phase::AskingForHook(_)
            | Phase::Completed(_)
            | Phase::Failed(_)
            | Phase::Aborted(_)
            | Phase::Expired(_) => return,
        };
        self.restored = true;
        if matches!(self.phase, Phase::Paused(_)) {
            // The public phase stays; why it is held is another matter, so it is told.
            self.phase = Phase::Paused(held);
            out.push(Action::Status(self.status()));
        } else {
            self.enter(Phase::Paused(held), at, out);
        }
    }

    /// Whether resuming has to begin what is held anew. Asked once: from then on it is under way.
    pub(super) fn begins_anew(&mut self, held: &Activity) -> bool {
        let restored = std::mem::take(&mut self.restored);
        restored
            && match held {
                Activity::Tools(_) => true,
                Activity::Hooks(wait) => wait.answered.is_none(),
                Activity::Judging(wait) => wait.judged.is_none(),
                Activity::Model { .. }
                | Activity::Compacting { .. }
                | Activity::HandedBack(_)
                // Begun again by being resumed.
                | Activity::TakingBack(_)
                | Activity::Stopping { .. } => false,
            }
    }

    /// No call is executing any more: one that may be repeated waits to begin again under its effect id, any other becomes a question, whether or not it reported that it began.
    fn hold_round(&mut self, mut round: ToolRound, at: Timestamp, out: &mut Vec<Action>) -> ToolRound {
        for index in 0..round.calls.len() {
            let Some(call) = round.calls.get(index).cloned() else { continue };
            let CallState::Executing { facts, attempts, .. } = call.state.clone() else { continue };
            let state = match facts.repeatability {
                Repeatability::Repeatable => CallState::Ready { facts, attempts: attempts.saturating_sub(1) },
                Repeatability::UntilBegun | Repeatability::NonRepeatable => {
                    self.ask_whether_to_repeat(&call, Loss::Backup, facts, attempts, at, out)
                }
            };
            if let Some(call) = round.calls.get_mut(index) {
                call.state = state;
            }
        }
        round
    }
}
