//! Beginning and ending model turns, and messages that arrive while the run is at work.

use palyra_common::{InputMode, Label, StableErrorEnvelope, StatusDetail, TerminationReason, Timestamp};
use palyra_models::{StopReason, ToolCallRequest};

use super::action::Action;
use super::hooks::HookStep;
use super::input::{ModelFailure, ModelTurn, Remedy};
use super::round::{NotRun, Refusal};
use super::state::{Activity, AnswerVerdict, Call, CallState, Ending, Phase, QueuedMessage, ToolRound};
use super::{Machine, Rejected};
use crate::canonical::sorted;
use crate::context::{self, Item};
use crate::spec::SAYS_WHAT_BECAME;

/// Attempts at one turn before a failing provider ends the run.
const MAX_ATTEMPTS: u32 = 3;
/// Pause before the second and third attempt.
const RETRY_DELAYS_MS: [u64; 2] = [250, 2_000];

/// Detail code of a run whose planner knows that it did not do what was asked.
pub(super) const TASK_NOT_DONE: &str = "task_not_done";
/// Detail code of an answer that follows a call that failed or was refused.
pub(super) const LAST_CALL_FAILED: &str = "last_call_failed";

impl Machine {
    pub(super) fn on_started(&mut self, at: Timestamp, out: &mut Vec<Action>) -> Result<(), Rejected> {
        if !matches!(self.phase, Phase::Queued) {
            return Err(self.reject("it was started before"));
        }
        self.begin_step(HookStep::BeforeRun, at, out);
        Ok(())
    }

    pub(super) fn on_model_delta(&mut self, turn: u32) -> Result<(), Rejected> {
        match self.phase {
            Phase::Running(Activity::Model { .. }) if turn == self.counters.turns => Ok(()),
            _ => Err(self.reject("no such model turn is in progress")),
        }
    }

    pub(super) fn on_turn_finished(
        &mut self,
        turn: ModelTurn,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        let attempt = self.expect_model_call(turn.turn, turn.attempt)?;
        self.counters.input_tokens = self.counters.input_tokens.saturating_add(turn.usage.input_tokens);
        self.counters.output_tokens = self.counters.output_tokens.saturating_add(turn.usage.output_tokens);
        if turn.stop_reason == StopReason::ContentFilter {
            self.end_now(
                provider_error("content_policy", "the model's provider withheld the answer".to_owned()),
                at,
                out,
            );
        } else if !turn.tool_calls.is_empty() {
            self.begin_round(turn, at, out);
        } else if turn.text.trim().is_empty() {
            let detail = detail("model_empty_answer", "the model answered with nothing".to_owned());
            self.retry_or_fail(attempt, detail, at, out);
        } else if self.queued.is_empty() {
            self.complete(&turn, at, out);
        } else {
            self.items.push(Item::Assistant { text: turn.text, calls: Vec::new(), reasoning: turn.reasoning });
            self.next_turn(at, out);
        }
        Ok(())
    }

    pub(super) fn on_model_failed(
        &mut self,
        failure: ModelFailure,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        let attempt = self.expect_model_call(failure.turn, failure.attempt)?;
        let detail = detail(&failure.error.code, failure.error.message);
        match failure.remedy {
            Remedy::Retry => self.retry_or_fail(attempt, detail, at, out),
            Remedy::Compact => match context::compactable(&self.spec, &self.items) {
                0 => self.end_now(exhausted(detail), at, out),
                replaces => self.begin_compaction(replaces, at, out),
            },
            Remedy::Nothing => {
                self.end_now(provider_error(&detail.code, detail.message), at, out);
            }
        }
        Ok(())
    }

    pub(super) fn on_budget_refused(
        &mut self,
        turn: u32,
        attempt: u32,
        error: StableErrorEnvelope,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        self.expect_model_call(turn, attempt)?;
        let detail = Some(detail(&error.code, error.message));
        self.end_now(Ending::without_answer(TerminationReason::BudgetExceeded, detail), at, out);
        Ok(())
    }

    pub(super) fn on_user_message(
        &mut self,
        text: String,
        mode: InputMode,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        if matches!(
            self.phase,
            Phase::Running(Activity::Stopping { .. } | Activity::TakingBack(_))
                | Phase::Paused(Activity::Stopping { .. } | Activity::TakingBack(_))
        ) {
            return Err(self.reject("it is ending"));
        }
        self.trusted.push(text.clone());
        self.queued.push(QueuedMessage { text, mode });
        if mode == InputMode::Interrupt {
            self.interrupt(at, out);
        }
        Ok(())
    }

    /// Stops what is under way, so that the queued message is read next.
    fn interrupt(&mut self, at: Timestamp, out: &mut Vec<Action>) {
        match std::mem::replace(&mut self.phase, Phase::Queued) {
            Phase::Running(Activity::Model { attempt }) => {
                self.phase = Phase::Running(Activity::Model { attempt });
                out.push(Action::StopModel { turn: self.counters.turns });
                self.next_turn(at, out);
            }
            Phase::Running(Activity::Tools(round)) => {
                let round =
                    self.abandon_pending(round, NotRun::Interrupted, "not run: the person wrote something new", out);
                self.phase = Phase::Running(Activity::Tools(round));
                self.advance(at, out);
            }
            Phase::WaitingForApproval(round) => {
                let round =
                    self.abandon_pending(round, NotRun::Interrupted, "not run: the person wrote something new", out);
                self.phase = Phase::WaitingForApproval(round);
                self.advance(at, out);
            }
            Phase::Paused(Activity::HandedBack(round)) => {
                let round =
                    self.abandon_pending(round, NotRun::Interrupted, "not run: the person wrote something new", out);
                self.phase = Phase::Paused(Activity::HandedBack(round));
                self.advance(at, out);
            }
            Phase::Running(Activity::Hooks(wait)) if matches!(wait.step, HookStep::BeforeDelivery(_)) => {
                self.phase = Phase::Running(Activity::Hooks(wait));
                self.abandon_step(out);
                self.next_turn(at, out);
            }
            Phase::AskingForHook(question) if matches!(question.step, HookStep::BeforeDelivery(_)) => {
                self.phase = Phase::AskingForHook(question);
                self.abandon_step(out);
                self.next_turn(at, out);
            }
            Phase::Running(Activity::Judging(wait)) => {
                self.phase = Phase::Running(Activity::Judging(wait));
                self.abandon_step(out);
                self.next_turn(at, out);
            }
            // Queued, paused, summarising or not yet begun: the message is read at the next turn anyway.
            other => self.phase = other,
        }
    }

    /// Begins the next turn: checks the limits, reads queued messages, summarises if the window is nearly full, calls the model.
    pub(super) fn next_turn(&mut self, at: Timestamp, out: &mut Vec<Action>) {
        if self.counters.turns >= self.spec.limits.max_turns {
            let message = self.limit_reached(self.spec.limits.max_turns, "model turn");
            self.end_now(
                Ending::without_answer(TerminationReason::MaxTurns, Some(detail("max_turns", message))),
                at,
                out,
            );
            return;
        }
        for message in std::mem::take(&mut self.queued) {
            self.unread.push(message.text.clone());
            self.items.push(Item::User { text: message.text, attachments: Vec::new(), label: Label::user() });
        }
        self.counters.turns += 1;
        if u64::from(context::tokens(&self.spec, &self.items)) > self.fills_up_at() {
            let replaces = context::compactable(&self.spec, &self.items);
            if replaces > 0 {
                self.begin_compaction(replaces, at, out);
                return;
            }
        }
        self.call_model_if_it_fits(at, out);
    }

    fn begin_compaction(&mut self, replaces: u32, at: Timestamp, out: &mut Vec<Action>) {
        let tokens = context::tokens(&self.spec, &self.items);
        self.enter(Phase::Running(Activity::Compacting { replaces }), at, out);
        out.push(Action::Compact { replaces, tokens });
    }

    pub(super) fn call_model_if_it_fits(&mut self, at: Timestamp, out: &mut Vec<Action>) {
        let tokens = context::tokens(&self.spec, &self.items);
        if tokens > self.spec.model.context_tokens {
            let message = format!(
                "the context needs about {tokens} tokens and the model reads {}",
                self.spec.model.context_tokens
            );
            self.end_now(exhausted(detail("context_budget_exhausted", message)), at, out);
            return;
        }
        self.call_model(1, at, out);
    }

    pub(super) fn call_model(&mut self, attempt: u32, at: Timestamp, out: &mut Vec<Action>) {
        self.enter(Phase::Running(Activity::Model { attempt }), at, out);
        self.unread.clear();
        let delay_ms = attempt
            .checked_sub(2)
            .and_then(|index| RETRY_DELAYS_MS.get(index as usize).or(RETRY_DELAYS_MS.last()))
            .copied()
            .unwrap_or(0);
        let tools = self.on_offer();
        out.push(Action::CallModel {
            turn: self.counters.turns,
            attempt,
            delay_ms,
            context: context::digest(&context::messages(&self.spec, &self.items)),
            tools,
        });
    }

    /// Says of which limit the run came to its end.
    fn limit_reached(&self, limit: u32, what: &str) -> String {
        let plural = if limit == 1 && self.spec.machine_version >= SAYS_WHAT_BECAME { "" } else { "s" };
        format!("the limit of {limit} {what}{plural} was reached")
    }

    fn retry_or_fail(&mut self, attempt: u32, detail: StatusDetail, at: Timestamp, out: &mut Vec<Action>) {
        if attempt < MAX_ATTEMPTS {
            self.call_model(attempt + 1, at, out);
        } else {
            self.end_now(provider_error(&detail.code, detail.message), at, out);
        }
    }

    fn expect_model_call(&self, turn: u32, attempt: u32) -> Result<u32, Rejected> {
        match self.phase {
            Phase::Running(Activity::Model { attempt: current })
                if turn == self.counters.turns && attempt == current =>
            {
                Ok(current)
            }
            _ => Err(self.reject("no such model call is in progress")),
        }
    }

    fn complete(&mut self, turn: &ModelTurn, at: Timestamp, out: &mut Vec<Action>) {
        let (detail, verdict) = self.about_answer(turn.stop_reason, &turn.text);
        self.items.push(Item::Assistant {
            text: turn.text.clone(),
            calls: Vec::new(),
            reasoning: turn.reasoning.clone(),
        });
        let answer = Some(self.answer(&turn.text));
        self.answered(Ending { reason: TerminationReason::FinalAnswer, detail, answer, verdict }, at, out);
    }

    /// What is to be said about an answer beside its text. Only facts count: what the provider says of its own answer, and whether the call right before
    /// it failed. What the words mean is for the person, or a judge.
    fn about_answer(&self, stop: StopReason, text: &str) -> (Option<StatusDetail>, AnswerVerdict) {
        let follows_failure = matches!(self.items.last(), Some(Item::ToolResult { failed: true, .. }));
        let failure = self.last_failure.as_ref().filter(|_| follows_failure);
        match stop {
            StopReason::NotDone => {
                let message = why_not_done(text);
                (Some(detail(TASK_NOT_DONE, message)), AnswerVerdict::NotDone)
            }
            StopReason::MaxTokens => {
                let message = "the model reached the limit on the length of its answer".to_owned();
                (Some(detail("answer_cut_off", message)), AnswerVerdict::Open)
            }
            StopReason::EndTurn | StopReason::ToolUse | StopReason::ContentFilter | StopReason::Other => {
                let message = |failure: &String| format!("the last call before the answer failed: {failure}");
                (failure.map(|failure| detail(LAST_CALL_FAILED, message(failure))), AnswerVerdict::Open)
            }
        }
    }

    /// Turns the model's calls into a round, under ids of our own: models repeat theirs.
    fn begin_round(&mut self, turn: ModelTurn, at: Timestamp, out: &mut Vec<Action>) {
        let proposed = u32::try_from(turn.tool_calls.len()).unwrap_or(u32::MAX);
        if self.counters.tool_calls.saturating_add(proposed) > self.spec.limits.max_tool_calls {
            let message = self.limit_reached(self.spec.limits.max_tool_calls, "tool call");
            self.end_now(
                Ending::without_answer(TerminationReason::MaxToolCalls, Some(detail("max_tool_calls", message))),
                at,
                out,
            );
            return;
        }
        self.counters.tool_calls += proposed;
        let mut calls = Vec::new();
        let mut requests = Vec::new();
        for (index, request) in turn.tool_calls.into_iter().enumerate() {
            let call_id = format!("t{}c{}", turn.turn, index + 1);
            requests.push(ToolCallRequest {
                id: call_id.clone(),
                name: request.name.clone(),
                arguments: request.arguments.clone(),
            });
            calls.push(self.parse_call(call_id, request, out));
        }
        self.items.push(Item::Assistant { text: turn.text, calls: requests, reasoning: turn.reasoning });
        self.phase = Phase::Running(Activity::Tools(ToolRound { calls }));
        self.advance(at, out);
    }

    /// A call whose arguments are no JSON object, or refer to no variable, is answered at once; the model can repair it.
    fn parse_call(&self, call_id: String, request: ToolCallRequest, out: &mut Vec<Action>) -> Call {
        let text = if request.arguments.trim().is_empty() { "{}" } else { request.arguments.as_str() };
        let refused = |message: String, out: &mut Vec<Action>| Call {
            call_id: call_id.clone(),
            tool: request.name.clone(),
            arguments: serde_json::Value::Null,
            references: Vec::new(),
            state: Refusal::new(NotRun::ArgumentsInvalid, message).settle(&call_id, &request.name, out),
        };
        let arguments = match serde_json::from_str::<serde_json::Value>(text) {
            Ok(arguments) if arguments.is_object() => sorted(arguments),
            Ok(_) => return refused("the arguments have to be a JSON object".to_owned(), out),
            Err(error) => return refused(format!("the arguments are not valid JSON: {error}"), out),
        };
        let (arguments, references) = match self.resolved(&request.name, arguments) {
            Ok(resolved) => resolved,
            Err(message) => return refused(message, out),
        };
        out.push(Action::Decide { call_id: call_id.clone(), tool: request.name.clone(), arguments: arguments.clone() });
        Call { call_id, tool: request.name, arguments, references, state: CallState::Proposed }
    }
}

pub(super) fn detail(code: &str, message: String) -> StatusDetail {
    StatusDetail { code: code.to_owned(), message }
}

/// Longest reason taken from an answer.
const LONGEST_REASON: usize = 200;

/// Why a task was not done: the first line of the answer, in which who answers so says why.
fn why_not_done(answer: &str) -> String {
    let line = answer.trim().lines().next().unwrap_or_default().trim_end_matches([':', '.', ' ']);
    let mut letters = line.chars();
    match (letters.next(), letters.next()) {
        (None, _) => "the task was not done".to_owned(),
        // The beginning of a sentence, unless it is a name.
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(line.chars().skip(1)).take(LONGEST_REASON).collect()
        }
        _ => line.chars().take(LONGEST_REASON).collect(),
    }
}

fn provider_error(code: &str, message: String) -> Ending {
    Ending::without_answer(TerminationReason::ProviderError, Some(detail(code, message)))
}

fn exhausted(detail: StatusDetail) -> Ending {
    Ending::without_answer(TerminationReason::ContextBudgetExhausted, Some(detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_an_answer_says_why_a_task_was_not_done() {
        for (answer, expected) in [
            ("Could not read `a`: it does not exist\n", "could not read `a`: it does not exist"),
            ("`ls x` failed with exit code 2:\nls: x: no such file\n", "`ls x` failed with exit code 2"),
            ("I did not understand that\nMore.", "I did not understand that"),
            ("  \n", "the task was not done"),
        ] {
            assert_eq!(why_not_done(answer), expected);
        }
        assert_eq!(why_not_done(&"Äa".repeat(400)).chars().count(), LONGEST_REASON);
    }
}
