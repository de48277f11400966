//! Working through the calls of one turn.
//!
//! The model's order is kept where it can matter: a read-only call may run beside other read-only calls before it, an exclusive call waits
//! until everything before it is over and runs alone. A refused or malformed call is over at once, with a result that tells the model why.

use palyra_common::{Digest, ErrorCategory, Label, StableErrorEnvelope, TerminationReason, Timestamp, ToolVerdict};
use palyra_policy::Containment;
use palyra_tools::{Concurrency, DecidedAs, Repeatability};

use super::action::Action;
use super::input::{CallFacts, CallResult, Decided};
use super::looping::{self, FinishedCall};
use super::state::{Activity, Call, CallOutcome, CallState, Ending, Phase, ToolRound};
use super::turns::detail;
use super::{Machine, Rejected};
use crate::canvas::CanvasUpdate;
use crate::context::Item;

impl Machine {
    pub(super) fn on_decided(
        &mut self,
        decided: Decided,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        let index = self
            .round()
            .and_then(|round| {
                round.calls.iter().position(|call| call.call_id == decided.call_id && call.state == CallState::Proposed)
            })
            .ok_or_else(|| self.reject("no such proposal waits for a decision"))?;
        let invalid = decided.invalid.is_some();
        let state = match decided.verdict {
            ToolVerdict::Deny => self.denied(index, &decided, out),
            ToolVerdict::Permit | ToolVerdict::NeedsApproval => self.screen(index, decided, at, out),
        };
        let over = match &state {
            CallState::Done(CallOutcome::NotRun { message, .. }) if invalid => Some(message.clone()),
            _ => None,
        };
        if let Some(call) = self.round_mut().and_then(|round| round.calls.get_mut(index)) {
            call.state = state;
        }
        // A call that can never be made and is proposed again and again is a circle like any other.
        if let Some(message) = over
            && self.goes_in_circles(index, &message, false, Concurrency::Shared, at, out)
        {
            return Ok(());
        }
        self.advance(at, out);
        Ok(())
    }

    /// A call that may not, or cannot, be made.
    fn denied(&self, index: usize, decided: &Decided, out: &mut Vec<Action>) -> CallState {
        let refusal = match &decided.invalid {
            Some(error) => Refusal { told: format!("error: {error}"), ..Refusal::of((**error).clone()) },
            None => {
                let told = if decided.told.is_empty() { &decided.reasons } else { &decided.told };
                Refusal {
                    told: format!("denied: {}", told.join("; ")),
                    ..Refusal::new(NotRun::Denied, decided.reasons.join("; "))
                }
            }
        };
        self.refuse(index, refusal, out)
    }

    /// The call at `index` is over without having been made.
    pub(super) fn refuse(&self, index: usize, refusal: Refusal, out: &mut Vec<Action>) -> CallState {
        match self.round().and_then(|round| round.calls.get(index)) {
            Some(call) => refusal.settle(&call.call_id, &call.tool, out),
            None => refusal.settle("", "", out),
        }
    }

    /// Ends the run if the call at `index` was made too often with the same arguments and the same result.
    fn goes_in_circles(
        &mut self,
        index: usize,
        content: &str,
        held: bool,
        concurrency: Concurrency,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> bool {
        let Some(call) = self.round().and_then(|round| round.calls.get(index)) else { return false };
        let tool = call.tool.clone();
        let (arguments, content) = self.repeated(&call.call_id, call.arguments.clone(), content, held);
        let workspace = self.spec.workspace.as_str();
        let call = FinishedCall { tool: &tool, arguments: &arguments, content: &content, concurrency, workspace };
        let repeats = looping::note(&mut self.seen, &call, self.spec.machine_version);
        if repeats < self.spec.limits.loop_repeats || self.is_stopping() {
            return false;
        }
        let message = format!("`{tool}` was called {repeats} times with the same arguments and the same result");
        let detail = Some(detail("loop_detected", message));
        self.end_now(Ending::without_answer(TerminationReason::MaxToolCalls, detail), at, out);
        true
    }

    /// A permitted call is ready; one of the client's tools is handed back.
    pub(super) fn permitted(&self, index: usize, facts: CallFacts, out: &mut Vec<Action>) -> CallState {
        let call = self.round().and_then(|round| round.calls.get(index));
        match call.and_then(|call| self.spec.client_tool(&call.tool).map(|tool| (call, tool))) {
            Some((call, tool)) => {
                out.push(Action::HandBack {
                    call_id: call.call_id.clone(),
                    tool: tool.name.clone(),
                    arguments: call.arguments.clone(),
                });
                CallState::HandedBack { facts }
            }
            None => CallState::Ready { facts, attempts: 0 },
        }
    }

    pub(super) fn on_tool_begun(&mut self, begun: &str) -> Result<(), Rejected> {
        let executing = self.round_mut().and_then(|round| round.call_mut(begun)).map(|call| &mut call.state);
        let Some(CallState::Executing { reported_begin, .. }) = executing else {
            return Err(self.reject("no such call is executing"));
        };
        *reported_begin = true;
        Ok(())
    }

    pub(super) fn on_tool_finished(
        &mut self,
        call_id: &str,
        mut result: Box<CallResult>,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        let waiting = |call: &Call| match &call.state {
            CallState::Executing { facts, .. } | CallState::HandedBack { facts } if call.call_id == call_id => {
                Some(facts.clone())
            }
            _ => None,
        };
        let found = self.round().and_then(|round| {
            round.calls.iter().enumerate().find_map(|(index, call)| Some((index, call.clone(), waiting(call)?)))
        });
        let Some((index, call, facts)) = found else {
            return Err(self.reject("no such call waits for its result"));
        };
        out.push(Action::Attest(result.attestation.clone()));
        out.extend(
            result.canvas.map(|drawn| Action::DrawCanvas(Box::new(CanvasUpdate::of_call(drawn, &call.arguments)))),
        );
        let (content, label) = (result.content.clone(), result.label.clone());
        let held = self.depends_on_untrusted(&call, &result);
        if let Some(attempts) = self.is_of_unknown_outcome(&call, &result) {
            let state = self.ask_whether_to_repeat(&call, Loss::Executor, facts, attempts, at, out);
            if let Some(call) = self.round_mut().and_then(|round| round.call_mut(call_id)) {
                call.state = state;
            }
            self.advance(at, out);
            return Ok(());
        }
        // Which tools a search finds would tell what it looked for.
        if !held {
            self.note_offering(&call, &result, out);
        }
        self.hold_changes(&call, &result);
        self.absorb(&call, &facts, &mut result);
        self.note_blind_call(&call);
        if let Some(call) = self.round_mut().and_then(|round| round.call_mut(call_id)) {
            call.state = CallState::Done(CallOutcome::Finished(result));
        }
        if self.goes_in_circles(index, &content, held, facts.concurrency, at, out) {
            return Ok(());
        }
        // A run that is ending waits for nobody but its calls.
        if !self.is_stopping() {
            self.review(call_id, facts, &content, label, out);
        }
        self.advance(at, out);
        Ok(())
    }

    /// How often a call was begun that broke off so that it may or may not have happened; nothing if it may simply be told to the model, because a second run does no harm or
    /// the run is ending anyway.
    fn is_of_unknown_outcome(&self, call: &Call, result: &CallResult) -> Option<u32> {
        match &call.state {
            CallState::Executing { facts, attempts, .. }
                if result.broke_off && facts.repeatability != Repeatability::Repeatable && !self.is_stopping() =>
            {
                Some(*attempts)
            }
            _ => None,
        }
    }

    /// Goes as far as it can without new input: starts calls, notices that all are over, ends a run that is stopping.
    pub(super) fn advance(&mut self, at: Timestamp, out: &mut Vec<Action>) {
        match std::mem::replace(&mut self.phase, Phase::Queued) {
            Phase::Running(Activity::Tools(round)) => {
                self.phase = Phase::Running(Activity::Tools(ToolRound::default()));
                self.advance_round(round, at, out);
            }
            Phase::WaitingForApproval(round) => {
                self.phase = Phase::WaitingForApproval(ToolRound::default());
                self.advance_round(round, at, out);
            }
            Phase::Paused(Activity::HandedBack(round)) => {
                self.phase = Phase::Paused(Activity::HandedBack(ToolRound::default()));
                self.advance_round(round, at, out);
            }
            Phase::Running(Activity::Stopping { round, ending, phase }) if !round.is_executing() => {
                self.phase = Phase::Running(Activity::Tools(ToolRound::default()));
                self.close_round(round);
                self.enter_terminal(phase, ending, at, out);
            }
            other => self.phase = other,
        }
    }

    fn advance_round(&mut self, mut round: ToolRound, at: Timestamp, out: &mut Vec<Action>) {
        let parallel = self.spec.limits.max_parallel.max(1) as usize;
        for index in 0..round.calls.len() {
            if !may_start(&round, index, parallel) {
                continue;
            }
            let Some(call) = round.calls.get_mut(index) else { continue };
            if let CallState::Ready { facts, attempts } = call.state.clone() {
                call.state = CallState::Executing { facts, attempts: attempts + 1, reported_begin: false };
                out.push(self.intent(call, attempts));
            }
        }
        let over = round.calls.iter().all(|call| matches!(call.state, CallState::Done(_)));
        if over {
            let limit = self.spec.limits.loop_repeats;
            if let Some(message) = self.useless.note(&round, limit, self.spec.machine_version) {
                self.phase = Phase::Running(Activity::Tools(round));
                let detail = Some(detail("loop_detected", message));
                self.end_now(Ending::without_answer(TerminationReason::MaxToolCalls, detail), at, out);
                return;
            }
            self.close_round(round);
            self.next_turn(at, out);
        } else if round.awaits_person() && !round.is_executing() && !has_undecided(&round) {
            self.enter(Phase::WaitingForApproval(round), at, out);
        } else if round.awaits_client() && !round.is_executing() && !has_undecided(&round) {
            self.enter(Phase::Paused(Activity::HandedBack(round)), at, out);
        } else {
            self.enter(Phase::Running(Activity::Tools(round)), at, out);
        }
    }

    /// The intent of a call. The effect id is the same whenever the same attempt is begun again after a crash.
    fn intent(&self, call: &Call, attempts_before: u32) -> Action {
        let digest = Digest::of_parts(&[
            self.spec.run_id.to_string().as_bytes(),
            call.call_id.as_bytes(),
            &attempts_before.to_be_bytes(),
        ]);
        Action::Execute {
            call_id: call.call_id.clone(),
            effect_id: format!("eff-{}", digest.to_hex().get(..32).unwrap_or_default()),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
        }
    }

    /// Puts the outcomes of a finished round into the transcript, in the model's order.
    fn close_round(&mut self, round: ToolRound) {
        for call in round.calls {
            let (content, failed, label) = match call.state {
                CallState::Done(outcome) => {
                    self.last_failure = outcome.failure().map(|failure| format!("{}: {failure}", call.tool));
                    match outcome {
                        CallOutcome::Finished(result) => {
                            let failed = result.failed();
                            (result.content, failed, result.label)
                        }
                        CallOutcome::NotRun { message, label, .. } => (message, true, label),
                    }
                }
                _ => ("not run: the run is ending".to_owned(), true, Label::system()),
            };
            self.items.push(Item::ToolResult { call_id: call.call_id, tool: call.tool, content, failed, label });
        }
    }

    /// After a restart: a repeatable call is begun again under its effect id, any other becomes a question.
    pub(super) fn recover_round(&mut self, mut round: ToolRound, at: Timestamp, out: &mut Vec<Action>) -> ToolRound {
        for index in 0..round.calls.len() {
            let Some(call) = round.calls.get(index).cloned() else { continue };
            let state = match call.state.clone() {
                CallState::Executing { facts, attempts, reported_begin }
                    if begins_again(facts.repeatability, reported_begin) =>
                {
                    out.push(self.intent(&call, attempts.saturating_sub(1)));
                    CallState::Executing { facts, attempts, reported_begin: false }
                }
                CallState::Executing { facts, attempts, .. } => {
                    self.ask_whether_to_repeat(&call, Loss::Daemon, facts, attempts, at, out)
                }
                CallState::Proposed => {
                    out.push(Action::Decide {
                        call_id: call.call_id.clone(),
                        tool: call.tool.clone(),
                        arguments: call.arguments.clone(),
                    });
                    CallState::Proposed
                }
                other => self.recover_call(index, &call.call_id, &call.tool, other, at, out),
            };
            if let Some(call) = round.calls.get_mut(index) {
                call.state = state;
            }
        }
        round
    }

    /// Gives up all calls that did not begin, takes questions back and asks executing calls to stop.
    pub(super) fn abandon_pending(
        &mut self,
        mut round: ToolRound,
        why: NotRun,
        message: &str,
        out: &mut Vec<Action>,
    ) -> ToolRound {
        let refusal = Refusal::new(why, message);
        for call in &mut round.calls {
            match &call.state {
                CallState::Executing { .. } => out.push(Action::StopTool { call_id: call.call_id.clone() }),
                CallState::AwaitingApproval { approval_id, .. } => {
                    out.push(Action::WithdrawApproval { approval_id: *approval_id });
                    call.state = refusal.clone().settle(&call.call_id, &call.tool, out);
                }
                CallState::Proposed | CallState::Ready { .. } | CallState::HandedBack { .. } => {
                    call.state = refusal.clone().settle(&call.call_id, &call.tool, out);
                }
                CallState::Screening(screening) => {
                    out.push(Action::StopHooks { occurrence_id: screening.occurrence_id.clone() });
                    call.state = refusal.clone().settle(&call.call_id, &call.tool, out);
                }
                // It ran: what came of it stays, whatever hooks would have said.
                CallState::Reviewing(reviewing) => {
                    out.push(Action::StopHooks { occurrence_id: reviewing.occurrence_id.clone() });
                    call.state = CallState::Done(CallOutcome::Finished(reviewing.result.clone()));
                }
                CallState::Done(_) => {}
            }
        }
        round
    }

    pub(super) fn round(&self) -> Option<&ToolRound> {
        match &self.phase {
            Phase::Running(Activity::Tools(round) | Activity::Stopping { round, .. })
            | Phase::Paused(Activity::Tools(round) | Activity::HandedBack(round) | Activity::Stopping { round, .. })
            | Phase::WaitingForApproval(round) => Some(round),
            _ => None,
        }
    }

    pub(super) fn round_mut(&mut self) -> Option<&mut ToolRound> {
        match &mut self.phase {
            Phase::Running(Activity::Tools(round) | Activity::Stopping { round, .. })
            | Phase::Paused(Activity::Tools(round) | Activity::HandedBack(round) | Activity::Stopping { round, .. })
            | Phase::WaitingForApproval(round) => Some(round),
            _ => None,
        }
    }

    /// What a call of the present round was decided as.
    #[must_use]
    pub fn decided_as(&self, call_id: &str) -> DecidedAs {
        match self.call(call_id).and_then(facts).map(|facts| facts.containment) {
            Some(Containment::Contained) => DecidedAs::Contained,
            Some(Containment::Reaching) | None => DecidedAs::Reaching,
        }
    }

    fn is_stopping(&self) -> bool {
        matches!(self.phase, Phase::Running(Activity::Stopping { .. }))
    }
}

/// Which rule kept a call from being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotRun {
    Denied,
    HookBlocked,
    HookFailedRun,
    ApprovalDenied,
    ApprovalTimeout,
    ApprovalError,
    ArgumentsInvalid,
    OutcomeUnknown,
    Interrupted,
    RunEnding,
    Internal,
}

/// Why a call is over without having been made.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    /// What people are told.
    pub(super) error: StableErrorEnvelope,
    /// How far that may be trusted.
    pub(super) error_label: Label,
    /// What the model is told.
    pub(super) told: String,
    /// How far that may be trusted.
    pub(super) label: Label,
}

impl Refusal {
    /// A refusal in words that people and the model are both told.
    pub(super) fn new(why: NotRun, message: impl Into<String>) -> Self {
        let (code, category) = match why {
            NotRun::Denied => ("denied", ErrorCategory::Policy),
            NotRun::HookBlocked => ("hook_blocked", ErrorCategory::Policy),
            NotRun::HookFailedRun => ("hook_failed_run", ErrorCategory::Policy),
            NotRun::ApprovalDenied => ("approval_denied", ErrorCategory::Policy),
            NotRun::ApprovalTimeout => ("approval_timeout", ErrorCategory::Policy),
            NotRun::ApprovalError => ("approval_error", ErrorCategory::Policy),
            NotRun::ArgumentsInvalid => ("tool_arguments_invalid", ErrorCategory::Validation),
            NotRun::OutcomeUnknown => ("outcome_unknown", ErrorCategory::Dependency),
            NotRun::Interrupted => ("interrupted", ErrorCategory::Conflict),
            NotRun::RunEnding => ("run_ending", ErrorCategory::Conflict),
            NotRun::Internal => ("internal", ErrorCategory::Internal),
        };
        Self::of(StableErrorEnvelope::new(code, category, message))
    }

    pub(super) fn of(error: StableErrorEnvelope) -> Self {
        Self { told: error.message.clone(), error, error_label: Label::system(), label: Label::system() }
    }

    /// A defect: the call that was dealt with is not there.
    pub(super) fn internal(message: &str) -> Self {
        Self::new(NotRun::Internal, message)
    }

    /// The state of the call from now on. People are told at once, whatever the rest of the round still waits for.
    pub(super) fn settle(self, call_id: &str, tool: &str, out: &mut Vec<Action>) -> CallState {
        let Self { error, error_label, told, label } = self;
        let code = error.code.clone();
        out.push(Action::NotRun {
            call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            error: Box::new(error),
            label: error_label,
        });
        CallState::Done(CallOutcome::NotRun { code, message: told, label })
    }
}

/// Who went away while a call was executing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// The daemon.
    Daemon,
    /// The state in which it ran; this is a copy that was made meanwhile.
    Backup,
    /// Whoever carried the call out, such as an outside server.
    Executor,
}

/// Whether a call that a restart cut short runs again without anybody being asked.
fn begins_again(repeatability: Repeatability, reported_begin: bool) -> bool {
    match repeatability {
        Repeatability::Repeatable => true,
        Repeatability::UntilBegun => !reported_begin,
        Repeatability::NonRepeatable => false,
    }
}

/// Whether a decision is awaited that no person makes: of policy or of hooks.
fn has_undecided(round: &ToolRound) -> bool {
    let undecided =
        |state: &CallState| matches!(state, CallState::Proposed | CallState::Screening(_) | CallState::Reviewing(_));
    round.calls.iter().any(|call| undecided(&call.state))
}

/// Whether the call at `index` may begin now; see the rule in the file's first lines.
fn may_start(round: &ToolRound, index: usize, parallel: usize) -> bool {
    let shared = |call: &Call| facts(call).is_some_and(|facts| facts.concurrency == Concurrency::Shared);
    let Some(call) = round.calls.get(index) else { return false };
    let executing: Vec<&Call> =
        round.calls.iter().filter(|call| matches!(call.state, CallState::Executing { .. })).collect();
    // What the client does in its own world has no order with what happens here, and may take days.
    let over = |call: &Call| matches!(call.state, CallState::Done(_) | CallState::HandedBack { .. });
    let unfinished_before = round.calls.iter().take(index).filter(|call| !over(call));
    if shared(call) {
        executing.len() < parallel
            && executing.iter().all(|call| shared(call))
            && unfinished_before.into_iter().all(shared)
    } else {
        executing.is_empty() && unfinished_before.into_iter().next().is_none()
    }
}

fn facts(call: &Call) -> Option<&CallFacts> {
    match &call.state {
        CallState::AwaitingApproval { facts, .. }
        | CallState::Ready { facts, .. }
        | CallState::HandedBack { facts }
        | CallState::Executing { facts, .. } => Some(facts),
        CallState::Screening(screening) => Some(&screening.facts),
        CallState::Reviewing(reviewing) => Some(&reviewing.facts),
        CallState::Proposed | CallState::Done(_) => None,
    }
}
