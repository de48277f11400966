//! Questions to people, and what their answers mean.
//!
//! An approval is bound to the digest of everything that the person is shown; see `displayed`. Its id is derived from the run, the call and the attempt, so that
//! a replayed run asks the very same question. A refusal is told to the model, which may find another way; proposing exactly what was refused
//! once more ends the run.

use std::time::Duration;

use palyra_common::{ApprovalDecision, ApprovalId, Digest, RunId, TerminationReason, Timestamp};
use palyra_models::REFUSAL_ADVICE;

use super::action::{Action, Question};
use super::displayed::{Displayed, proposal_digest};
use super::input::CallFacts;
use super::round::{Loss, NotRun, Refusal};
use super::state::{Call, CallState, Ending, MoneyQuestion, Phase, ToolRound};
use super::turns::detail;
use super::{Machine, Rejected};
use crate::spec::SAYS_WHAT_BECAME;

/// How a question begins about a call whose outcome is unknown.
pub(crate) const MAY_HAVE_HAPPENED: &str = "run again, although it may have happened already: ";

impl Machine {
    /// Asks whether the proposed call at `index` may run.
    pub(super) fn ask_person(
        &mut self,
        index: usize,
        question: Question,
        reasons: Vec<String>,
        facts: CallFacts,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> CallState {
        match self.round().and_then(|round| round.calls.get(index)).cloned() {
            Some(call) => self.ask(&call, question, reasons, facts, 0, at, out),
            None => self.refuse(index, Refusal::internal("the call disappeared"), out),
        }
    }

    /// Asks whether a call that may or may not have happened is to be run again.
    pub(super) fn ask_whether_to_repeat(
        &mut self,
        call: &Call,
        loss: Loss,
        facts: CallFacts,
        attempts: u32,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> CallState {
        let reason = match loss {
            Loss::Daemon => {
                "the daemon stopped while this call was running, so its outcome is unknown; \
                 look whether it happened before you allow it again"
            }
            Loss::Backup => {
                "this state was restored from a backup that was made while the call was running, so its outcome is unknown; \
                 look whether it happened before you allow it again"
            }
            Loss::Executor => {
                "the server of this tool went away while the call was running, so its outcome is unknown; \
                 look whether it happened before you allow it again"
            }
        };
        self.ask(call, Question::RunAgain, vec![reason.to_owned()], facts, attempts, at, out)
    }

    #[expect(clippy::too_many_arguments, reason = "one private constructor for both kinds of question")]
    fn ask(
        &mut self,
        call: &Call,
        question: Question,
        reasons: Vec<String>,
        facts: CallFacts,
        attempts: u32,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> CallState {
        let proposal = proposal_digest(call, &facts);
        let mut displayed = Displayed::call(call, question, reasons, &facts);
        if question == Question::RunAgain && self.spec.machine_version >= SAYS_WHAT_BECAME {
            // Wherever a question is shown in one line, that line has to say so.
            displayed.summary.insert_str(0, MAY_HAVE_HAPPENED);
        }
        let (approval_id, expires_at) = self.put_question(&call.call_id, displayed, proposal, at, out);
        CallState::AwaitingApproval { approval_id, question, expires_at, proposal, facts, attempts }
    }

    /// The id of a new question about a call, or about what stands where a call would, and when it lapses.
    pub(super) fn next_question(&mut self, call_id: &str, at: Timestamp) -> (ApprovalId, Option<Timestamp>) {
        let id = approval_id(self.spec.run_id, call_id, self.counters.approvals, at);
        self.counters.approvals += 1;
        let timeout = self.spec.limits.approval_timeout_ms;
        (id, (timeout > 0).then(|| at.plus(Duration::from_millis(timeout))))
    }

    pub(super) fn on_approval_decided(
        &mut self,
        approval_id: ApprovalId,
        decision: ApprovalDecision,
        reason: Option<&str>,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        if self.on_money_decided(approval_id, decision, at, out).is_some()
            || self.on_hook_question_decided(approval_id, decision, reason, at, out).is_some()
        {
            return Ok(());
        }
        let asked = |call: &Call| matches!(&call.state, CallState::AwaitingApproval { approval_id: id, .. } if *id == approval_id);
        let found = self.round().and_then(|round| {
            let index = round.calls.iter().position(asked)?;
            round.calls.get(index).map(|call| (index, call.state.clone()))
        });
        let Some((index, CallState::AwaitingApproval { question, proposal, facts, attempts, .. })) = found else {
            return Err(self.reject("no such approval is open"));
        };
        let state = match (decision, question) {
            (ApprovalDecision::Allow, Question::RunAgain) => CallState::Ready { facts, attempts },
            (ApprovalDecision::Allow, _) => {
                if let Some(tool) = self.round().and_then(|round| round.calls.get(index)).map(|call| call.tool.clone())
                {
                    self.mandates.fulfil(&tool, facts.mandate.as_ref());
                }
                self.permitted(index, facts, out)
            }
            // Never asked about a call.
            (_, Question::SpendMore | Question::MayGoOn | Question::ReplaceAnswer | Question::AcceptChanges) => {
                self.refuse(index, Refusal::internal("the question was not about a call"), out)
            }
            (_, Question::RunAgain) => {
                let message = if self.spec.machine_version < 4 {
                    "outcome unknown: the daemon stopped while this ran; a person decided not to run it again"
                } else {
                    "outcome unknown: this was interrupted; a person decided not to run it again"
                };
                let refusal = Refusal::new(NotRun::OutcomeUnknown, message);
                self.refuse(index, refusal, out)
            }
            (ApprovalDecision::Deny, Question::MayItRun) => {
                let refusal = Refusal {
                    told: format!("{}; {REFUSAL_ADVICE}", denied("this call", reason)),
                    ..Refusal::new(NotRun::ApprovalDenied, denied("it", reason))
                };
                self.refuse(index, refusal, out)
            }
            (ApprovalDecision::Timeout, Question::MayItRun) => {
                self.refuse(index, Refusal::new(NotRun::ApprovalTimeout, "nobody approved this call in time"), out)
            }
            (ApprovalDecision::Error, Question::MayItRun) => {
                self.refuse(index, Refusal::new(NotRun::ApprovalError, "the approval could not be asked for"), out)
            }
        };
        if let Some(call) = self.round_mut().and_then(|round| round.calls.get_mut(index)) {
            call.state = state;
        }
        if decision != ApprovalDecision::Allow && question == Question::MayItRun {
            if self.refused.contains(&proposal) {
                let message = match reason {
                    None => "a person had already refused exactly this call",
                    Some(_) => "exactly this call had already been denied",
                };
                self.end_now(
                    Ending::without_answer(
                        TerminationReason::ApprovalDenied,
                        Some(detail("approval_denied", message.to_owned())),
                    ),
                    at,
                    out,
                );
                return Ok(());
            }
            self.refused.push(proposal);
        }
        self.advance(at, out);
        Ok(())
    }

    pub(super) fn earliest_expiry(round: &ToolRound) -> Option<Timestamp> {
        round
            .calls
            .iter()
            .filter_map(|call| match &call.state {
                CallState::AwaitingApproval { expires_at, .. } => *expires_at,
                _ => None,
            })
            .min()
    }

    /// Approvals whose time is up at `at`.
    pub(super) fn lapsed_approvals(&self, at: Timestamp) -> Vec<ApprovalId> {
        let lapsed = |call: &Call| match &call.state {
            CallState::AwaitingApproval { approval_id, expires_at: Some(expires), .. } if *expires <= at => {
                Some(*approval_id)
            }
            _ => None,
        };
        if let Phase::AskingForMoney(MoneyQuestion { approval_id, expires_at: Some(expires), .. }) = &self.phase
            && *expires <= at
        {
            return vec![*approval_id];
        }
        if let Phase::AskingForHook(question) = &self.phase
            && question.expires_at.is_some_and(|expires| expires <= at)
        {
            return vec![question.approval_id];
        }
        self.round().map(|round| round.calls.iter().filter_map(lapsed).collect()).unwrap_or_default()
    }
}

/// That something was denied. Where a reason came with the answer, it need not have been a person's own: a command may deny for them.
fn denied(what: &str, reason: Option<&str>) -> String {
    match reason {
        None => format!("a person refused {what}"),
        Some(reason) => format!("{what} was denied ({reason})"),
    }
}

/// A ULID whose time is the input's and whose random part is a digest: sortable, unique within the run, and the same on replay.
fn approval_id(run: RunId, call_id: &str, asked_before: u32, at: Timestamp) -> ApprovalId {
    let digest = Digest::of_parts(&[run.to_string().as_bytes(), call_id.as_bytes(), &asked_before.to_be_bytes()]);
    let low = digest.0.iter().take(10).fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
    let millis = u128::try_from(at.0.max(0)).unwrap_or(0) & ((1 << 48) - 1);
    ApprovalId::from_u128(millis << 80 | low)
}
