//! What was written to a run that ended before its model read it.
//!
//! A message that steers is accepted for the next turn. When there is no next turn, because a limit was reached, the model failed or time ran out, the message becomes an input
//! of the session again and begins the next run. When somebody cancelled the run, nothing begins behind their back: the input is recorded as not delivered, with its text.
//!
//! INVARIANT: both are in the commit that ends the run, so no crash can lose the message in between. This is the one record about a session that is
//! committed without its lock: whoever writes to the session may hold it and wait for this driver. It only turns inputs of this run from taken to waiting, which nobody
//! else does.

use std::sync::Arc;

use palyra_common::{ErrorCategory, InputMode, RequestId, StableErrorEnvelope, TerminationReason};
use palyra_journal::{NewRecord, StoredRecord};

use super::Engine;
use super::driver::Driver;
use crate::error::AgentError;
use crate::machine::{Input, Phase};
use crate::projections;
use crate::session::{InputGiven, InputsFailed, InputsReturned, InputsTaken, kind};
use crate::started_with::StartedWith;
use crate::tape::{self, Note, TapeEntry};

impl Driver {
    /// The records that belong beside the one that ends the run; none while it goes on.
    pub(super) async fn given_back(&mut self) -> Result<Vec<NewRecord>, AgentError> {
        let mut unread: Vec<String> = self.machine.undelivered().map(str::to_owned).collect();
        if !self.machine.is_over() || unread.is_empty() {
            return Ok(Vec::new());
        }
        let engine = Engine { shared: Arc::clone(&self.shared) };
        let spec = self.machine.spec();
        let (session_id, run_id) = (spec.session_id, spec.run_id);
        let mut steered = engine.query(move |reader| projections::steered_inputs(reader.connection(), run_id)).await?;
        steered.extend(staged(&self.staged)?);
        // The newest messages are the unread ones, so they are matched from the end.
        let (mut input_ids, mut written_to_the_run) = (Vec::new(), Vec::new());
        while let Some(text) = unread.pop() {
            match steered.iter().rposition(|(_, known)| *known == text) {
                Some(place) => input_ids.insert(0, steered.remove(place).0),
                None => written_to_the_run.insert(0, text),
            }
        }
        if self.was_cancelled() {
            // What was written to the run itself is on its tape, and nowhere else.
            if input_ids.is_empty() {
                return Ok(Vec::new());
            }
            let failed = InputsFailed { session_id, input_ids, error: not_delivered() };
            return Ok(vec![engine.session_record(kind::INPUT_FAILED, session_id, &failed)?]);
        }
        let mut records = Vec::new();
        if !input_ids.is_empty() {
            let returned = InputsReturned { session_id, input_ids, run_id };
            records.push(engine.session_record(kind::INPUT_RETURNED, session_id, &returned)?);
        }
        let authors = if written_to_the_run.is_empty() {
            Vec::new()
        } else {
            authors(&engine.whole_tape(run_id).await?, &self.staged)?
        };
        for text in written_to_the_run {
            let author = authors.iter().rev().find(|(written, _)| *written == text).and_then(|(_, with)| with.as_ref());
            let given = InputGiven {
                session_id,
                input_id: RequestId::generate().to_string(),
                text,
                mode: InputMode::FollowUp,
                workspace: Some(spec.workspace.clone()),
                by: spec.owner.clone(),
                given_with: returned_with(&spec.started_with, author),
                agent: Some(spec.agent.clone()),
                from: None,
            };
            records.push(engine.session_record(kind::INPUT, session_id, &given)?);
        }
        // Before the commit: whoever looks after it must find that something waits.
        self.shared.lock_waiting().insert(session_id);
        Ok(records)
    }

    fn was_cancelled(&self) -> bool {
        matches!(self.machine.state(), Phase::Aborted(end) if end.reason == TerminationReason::Cancellation)
    }
}

/// Inputs that go into the run with the very commit that ends it: an interruption may reach a limit.
fn staged(records: &[NewRecord]) -> Result<Vec<(String, String)>, AgentError> {
    let (mut texts, mut steered) = (Vec::new(), Vec::new());
    for record in records {
        match record.kind.as_ref() {
            kind::INPUT => {
                let given: InputGiven = serde_json::from_slice(&record.payload).map_err(|error| unreadable(&error))?;
                texts.push((given.input_id, given.text));
            }
            kind::INPUT_TAKEN => {
                let taken: InputsTaken = serde_json::from_slice(&record.payload).map_err(|error| unreadable(&error))?;
                steered.extend(texts.iter().filter(|(id, _)| taken.input_ids.contains(id)).cloned());
            }
            _ => {}
        }
    }
    Ok(steered)
}

/// What people wrote to a run, with the credential of each that is not the one which started it.
fn authors(tape: &[StoredRecord], staged: &[NewRecord]) -> Result<Vec<(String, Option<StartedWith>)>, AgentError> {
    let committed = tape.iter().map(|record| (record.kind.as_ref(), record.payload.as_slice()));
    let staged = staged.iter().map(|record| (record.kind.as_ref(), record.payload.as_slice()));
    let (mut authors, mut with) = (Vec::new(), None);
    for (kind, payload) in committed.chain(staged) {
        match kind {
            tape::kind::RUN_STEERED | tape::kind::RUN_USER_MESSAGE => {}
            // That is what the note before it was about.
            tape::kind::RUN_ENVELOPE_EDITED | tape::kind::TOOL_FINISHED => {
                with = None;
                continue;
            }
            _ => continue,
        }
        match serde_json::from_slice(payload).map_err(|error| unreadable(&error))? {
            TapeEntry::Note(Note::Steered(actor)) => with = Some(actor.with),
            TapeEntry::Input(Input::UserMessage { text, .. }) => authors.push((text, with.take())),
            _ => {}
        }
    }
    Ok(authors)
}

/// With what a message begins a run that was written to another: never with more than its author had.
fn returned_with(run: &StartedWith, author: Option<&StartedWith>) -> StartedWith {
    let Some(author) = author else { return run.clone() };
    StartedWith { workspace: run.workspace.narrower(author.workspace), program: author.program.clone() }
}

fn unreadable(error: &serde_json::Error) -> AgentError {
    AgentError::Internal(format!("a record does not read: {error}"))
}

fn not_delivered() -> StableErrorEnvelope {
    let message = "the run was cancelled before its model read this";
    StableErrorEnvelope::new("input_not_delivered", ErrorCategory::Conflict, message)
        .hint("send it again if it is still wanted; it then begins a run")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::started_with::WorkspaceAuthority::{Conversation, Granted, LocalOwner};

    #[test]
    fn a_returned_message_has_neither_more_than_the_run_nor_more_than_its_author() {
        let with = |workspace, program: Option<&str>| StartedWith { workspace, program: program.map(str::to_owned) };
        let owner = with(LocalOwner, None);
        assert_eq!(returned_with(&owner, None), owner);
        let token = with(Granted, Some("token a"));
        assert_eq!(returned_with(&owner, Some(&token)), token);
        assert_eq!(returned_with(&token, Some(&owner)), with(Granted, None));
        let talking = with(Conversation, Some("token b"));
        assert_eq!(returned_with(&token, Some(&talking)), talking);
    }
}
