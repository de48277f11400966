//! From a run's tape to an answer in pieces, as both ways of answering need it.
//!
//! What the model writes is passed on as it comes, turn after turn. Only where a text begins to refer to a variable the rest of the turn waits: what the
//! reference stands for is known when the run ends. What was said here is thus always the beginning of what the run answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::{
    ErrorCategory, JournalEvent, RunId, RunLifecyclePhase, RunStatus, RunStreamBody, RunStreamEvent,
    StableErrorEnvelope, TerminationReason,
};
use palyra_models::Usage;
use serde_json::Value;

use super::conversation::{self, BETWEEN, Chain, Place};
use super::ids;
use crate::app::App;
use crate::dispatch::{self, Caller, Documents, HeldPage, Page, PagePermit, Refusal, Result};

/// How long silence lasts before it is told.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// More text.
    Text(String),
    /// A person is waited for; why, in one line.
    Waiting(String),
    /// The waiting is over.
    Going,
    /// Nothing happened for a while.
    Silence,
    /// The answer is complete. Always the last piece.
    Done(Ending),
}

impl Piece {
    /// What it holds, about.
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Waiting(text) => text.len(),
            Self::Done(Ending::Calls(calls)) => calls.iter().map(|call| call.arguments.len()).sum(),
            Self::Going | Self::Silence | Self::Done(Ending::Stop | Ending::Length | Ending::Filtered) => 0,
        }
    }
}

/// How an answer ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    /// Everything was said.
    Stop,
    /// The model was cut off.
    Length,
    /// The provider withheld the rest.
    Filtered,
    /// These calls are the client's to make.
    Calls(Vec<ClientCall>),
}

/// A call of a tool of the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClientCall {
    /// Its name for the client.
    pub(super) id: String,
    /// The tool.
    pub(super) name: String,
    /// The arguments as JSON.
    pub(super) arguments: String,
}

/// An answer under way.
pub(super) struct Following {
    app: Arc<App>,
    caller: Caller,
    run_id: RunId,
    from_seq: u64,
    documents: Documents,
    /// The right to hold what was read last. The connection asks for another piece when it has taken the one before.
    permit: Option<PagePermit>,
    /// The conversation, if the answer is to be found again by it.
    chain: Option<Chain>,
    heartbeat: Duration,
    ready: VecDeque<Piece>,
    said: String,
    turn: Turn,
    calls: Vec<(String, ClientCall)>,
    usage: Usage,
    is_waiting: bool,
    is_over: bool,
}

/// What was heard of the present attempt at a turn.
#[derive(Debug, Default)]
struct Turn {
    said: String,
    held: String,
    /// Its whole text, once it is over.
    text: Option<String>,
}

impl Following {
    pub(super) fn new(
        app: Arc<App>,
        caller: Caller,
        run_id: RunId,
        from_seq: u64,
        documents: Documents,
        chain: Option<Chain>,
    ) -> Self {
        Self {
            app,
            caller,
            run_id,
            from_seq,
            documents,
            permit: None,
            chain,
            heartbeat: HEARTBEAT,
            ready: VecDeque::new(),
            said: String::new(),
            turn: Turn::default(),
            calls: Vec::new(),
            usage: Usage::default(),
            is_waiting: false,
            is_over: false,
        }
    }

    /// The same, telling of silence at least this often.
    pub(super) fn no_longer_silent_than(mut self, longest: Duration) -> Self {
        self.heartbeat = self.heartbeat.min(longest);
        self
    }

    pub(super) fn run_id(&self) -> RunId {
        self.run_id
    }

    /// The position on the tape where this answer begins.
    pub(super) fn begins_at(&self) -> u64 {
        self.from_seq
    }

    /// What the model used for this answer so far.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// The next piece, or `None` after the last one. Not cancel-safe: silence is told from within.
    pub(super) async fn next(&mut self) -> Result<Option<Piece>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if self.is_over {
                return Ok(None);
            }
            drop(self.permit.take());
            let closing = self.app.closing.clone();
            let page = tokio::select! {
                page = tokio::time::timeout(self.heartbeat, self.documents.next()) => page,
                () = closing.cancelled() => return Err(Refusal::stopping()),
            };
            match page {
                Err(_) => return Ok(Some(Piece::Silence)),
                Ok(page) => match page? {
                    Some(HeldPage { page: Page::Events(events), mut permit }) => {
                        for event in events {
                            self.take_in(&event).await?;
                        }
                        permit.resize(self.ready.iter().map(Piece::bytes).sum());
                        self.permit = Some(permit);
                    }
                    Some(_) => {}
                    // Without a terminal event only the end of the daemon ends a tape.
                    None => return Err(Refusal::stopping()),
                },
            }
        }
    }

    async fn take_in(&mut self, event: &RunStreamEvent) -> Result<()> {
        if self.is_over {
            return Ok(());
        }
        match &event.body {
            RunStreamBody::ModelToken(token) => self.hear(&token.text),
            RunStreamBody::JournalEvent(record) => self.note(record),
            RunStreamBody::ToolResult(result) => self.calls.retain(|(call_id, _)| *call_id != result.call_id),
            RunStreamBody::ToolApprovalRequest(request) => {
                let why = format!("waiting for approval {}: {}", request.approval_id, request.summary);
                self.wait(&why);
            }
            RunStreamBody::ToolApprovalResponse(_) => self.go_on(),
            RunStreamBody::Status(status) => self.enter(status).await?,
            _ => {}
        }
        Ok(())
    }

    async fn enter(&mut self, status: &RunStatus) -> Result<()> {
        let code = status.detail.as_ref().map_or("", |detail| detail.code.as_str());
        match status.phase {
            RunLifecyclePhase::Paused if code == palyra_agent::machine::CLIENT_TOOLS_PENDING => {
                let calls = std::mem::take(&mut self.calls).into_iter().map(|(_, call)| call).collect();
                self.end(Ending::Calls(calls));
            }
            RunLifecyclePhase::Paused => self.wait("the run was paused"),
            RunLifecyclePhase::Running => self.go_on(),
            RunLifecyclePhase::Completed => self.complete(code).await?,
            phase if !phase.is_terminal() => {}
            // There is an answer, and it says that the task was not done.
            _ if status.reason == Some(TerminationReason::FinalAnswer) => self.complete(code).await?,
            _ if code == "content_policy" => self.end(Ending::Filtered),
            _ => return Err(without_answer(self.run_id, status)),
        }
        Ok(())
    }

    /// The run has its answer: whatever of it was not said yet is said now.
    async fn complete(&mut self, code: &str) -> Result<()> {
        let answer = self.app.engine.run(self.run_id).await?.answer.unwrap_or_default();
        match answer.strip_prefix(self.turn.said.as_str()) {
            Some(rest) => self.say(rest),
            None => {
                self.turn = Turn::default();
                self.say(&answer);
            }
        }
        if let Some(chain) = self.chain {
            let place = Place { run_id: self.run_id, from_seq: self.from_seq };
            let (app, caller, said) = (Arc::clone(&self.app), self.caller.clone(), chain.answered(&self.said));
            let noting = async move { conversation::note(&app, &caller, said, place).await };
            // A client that leaves with the last word still finds its conversation again.
            let noted = dispatch::to_the_end(&self.app, noting).await;
            // The answer itself is safe; only the next request would begin a session of its own.
            if let Err(refusal) = noted {
                tracing::warn!(error = %refusal.envelope().message, run_id = %self.run_id, "the conversation could not be recorded");
            }
        }
        self.end(if code == "answer_cut_off" { Ending::Length } else { Ending::Stop });
        Ok(())
    }

    fn note(&mut self, record: &JournalEvent) {
        match record.kind.as_str() {
            "model.call" => {
                // A turn that ended without calls and is not the last: somebody wrote meanwhile.
                self.flush();
                self.turn = Turn::default();
                self.calls.clear();
            }
            "model.turn_finished" => {
                let Some(finished) = record.payload.pointer("/input/model_turn_finished") else { return };
                let count = |field: &str| finished.pointer(field).and_then(Value::as_u64).unwrap_or(0);
                let Usage { input_tokens, output_tokens, .. } = &mut self.usage;
                *input_tokens = input_tokens.saturating_add(count("/usage/input_tokens"));
                *output_tokens = output_tokens.saturating_add(count("/usage/output_tokens"));
                self.turn.text = finished.get("text").and_then(Value::as_str).map(str::to_owned);
                let has_calls =
                    finished.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
                if has_calls {
                    self.flush();
                }
            }
            "tool.handed_back" => {
                let Some(call) = record.payload.pointer("/action/hand_back") else { return };
                let text = |field: &str| call.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
                let arguments = call.get("arguments").map_or_else(|| "{}".to_owned(), Value::to_string);
                let call_id = text("call_id");
                let id = ids::call(self.run_id, &call_id);
                self.calls.push((call_id, ClientCall { id, name: text("tool"), arguments }));
            }
            _ => {}
        }
    }

    fn hear(&mut self, text: &str) {
        let mut heard = std::mem::take(&mut self.turn.held);
        heard.push_str(text);
        match reference_in(&heard) {
            None => self.say(&heard),
            Some(at) => {
                let (plain, held) = heard.split_at(at);
                self.turn.held = held.to_owned();
                self.say(plain);
            }
        }
    }

    /// Says what is left of a turn that is over.
    fn flush(&mut self) {
        let Some(text) = self.turn.text.take() else { return };
        self.turn.held.clear();
        if let Some(rest) = text.strip_prefix(self.turn.said.as_str()) {
            self.say(rest);
        }
    }

    fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut piece = String::new();
        if self.turn.said.is_empty() && !self.said.is_empty() {
            piece.push_str(BETWEEN);
        }
        piece.push_str(text);
        self.turn.said.push_str(text);
        self.said.push_str(&piece);
        self.ready.push_back(Piece::Text(piece));
    }

    fn wait(&mut self, why: &str) {
        self.is_waiting = true;
        // A line break would end the comment that this becomes.
        let line: String = why.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
        self.ready.push_back(Piece::Waiting(line));
    }

    fn go_on(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.ready.push_back(Piece::Going);
        }
    }

    fn end(&mut self, ending: Ending) {
        self.is_over = true;
        self.ready.push_back(Piece::Done(ending));
    }
}

/// Where a text begins to refer to a variable, or may do so with its next words.
fn reference_in(text: &str) -> Option<usize> {
    const OPENING: &str = "${v";
    text.match_indices('$').map(|(at, _)| at).find(|at| {
        let rest = text.get(*at..).unwrap_or_default();
        rest.starts_with(OPENING) || OPENING.starts_with(rest)
    })
}

/// A run that ended without an answer.
fn without_answer(run_id: RunId, status: &RunStatus) -> Refusal {
    let category = match status.reason {
        Some(TerminationReason::ProviderError) => ErrorCategory::Dependency,
        Some(TerminationReason::ContextBudgetExhausted) => ErrorCategory::Validation,
        _ => ErrorCategory::Conflict,
    };
    let why = match (&status.detail, status.reason) {
        (Some(detail), _) => format!("{} [{}]", detail.message, detail.code),
        (None, Some(reason)) => reason.to_string(),
        (None, None) => status.phase.to_string(),
    };
    StableErrorEnvelope::new("run_without_answer", category, format!("the run {run_id} ended without an answer: {why}"))
        .hint(format!("`palyra runs show {run_id}` shows details"))
        .details(serde_json::json!({ "run_id": run_id, "reason": status.reason }))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_become_a_reference_is_held() {
        for (text, at) in [
            ("it costs $5", None),
            ("$", Some(0)),
            ("a ${", Some(2)),
            ("a ${v1.x} b", Some(2)),
            ("${x} and ${v", Some(9)),
            ("$v1", None),
            ("ä $$", Some(4)),
        ] {
            assert_eq!(reference_in(text), at, "{text}");
        }
    }
}
