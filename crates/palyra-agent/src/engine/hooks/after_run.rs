//! Telling hooks that a run is over.
//!
//! The intent is in the commit that ends the run; the outcome is a note on its tape. A run whose intent has no outcome is found at the next start and its
//! hooks are asked again, so they hear of every end at least once. Nothing they say changes how the run ended.

use std::sync::Arc;

use palyra_common::{ErrorCategory, RunId, RunLifecycleHookPhase, ToStableError as _};
use palyra_journal::NewRecord;
use tokio::sync::mpsc;

use super::{Request, ask};
use crate::engine::driver::APPEND_RETRY;
use crate::engine::live_tape::{LiveTape, Weighed};
use crate::engine::{Engine, LiveRun, Shared};
use crate::error::AgentError;
use crate::machine::{Action, Machine};
use crate::projections;
use crate::replay::replay;
use crate::tape::{self, EntryRef, Note, TapeEntry};

/// A run that is over and whose hooks are to be told.
pub(in crate::engine) struct AfterRun {
    pub(in crate::engine) shared: Arc<Shared>,
    pub(in crate::engine) machine: Machine,
    pub(in crate::engine) request: Request,
    pub(in crate::engine) tape: Arc<LiveTape>,
    pub(in crate::engine) next_seq: u64,
}

impl AfterRun {
    /// Asks the hooks and notes what they said. If the daemon stops first, the next start does it.
    pub(in crate::engine) async fn carry_out(self) {
        let asking = ask(&self.shared, &self.machine, &self.request);
        let results = tokio::select! {
            biased;
            () = self.shared.stopping.cancelled() => return,
            results = asking => results,
        };
        let run_id = self.machine.spec().run_id;
        if let Err(error) = self.note(Note::HooksAnswered(self.request.answered(&self.machine, results))).await {
            tracing::error!(%run_id, error = %error.to_stable(), "hook results for the end of a run could not be recorded");
        }
    }

    async fn note(&self, note: Note) -> Result<(), AgentError> {
        let spec = self.machine.spec();
        let entry = EntryRef::Note(&note);
        let at = self.shared.options.clock.now();
        let record = NewRecord::new(entry.kind(), at, entry.payload()?)
            .in_session(spec.session_id)
            .on_tape(spec.run_id, self.next_seq);
        let bytes = record.payload.len();
        loop {
            match self.shared.options.journal.append(vec![record.clone()]).await {
                Ok(_) => break,
                Err(error) if error.to_stable().category == ErrorCategory::Availability => {
                    tokio::select! {
                        () = self.shared.stopping.cancelled() => return Ok(()),
                        () = tokio::time::sleep(APPEND_RETRY) => {}
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        let event = tape::event(spec.run_id, self.next_seq, at, entry);
        self.tape.publish(vec![Weighed { event, bytes }]);
        Ok(())
    }
}

impl Engine {
    /// Takes up what was owed to hooks when the daemon stopped.
    pub(in crate::engine) async fn tell_hooks_of_ended_runs(&self) -> Result<(), AgentError> {
        let due = self.query(|reader| projections::hooks_due(reader.connection())).await?;
        for run_id in due {
            match self.owed(run_id).await {
                Ok(Some(after)) => self.tell_later(run_id, after),
                Ok(None) => {}
                // The tape is at fault, today and tomorrow; the run itself is over all the same.
                Err(error @ AgentError::BadTape { .. }) => {
                    tracing::error!(%run_id, %error, "hooks could not be notified of the end of this run");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(in crate::engine) async fn owed(&self, run_id: RunId) -> Result<Option<AfterRun>, AgentError> {
        let records = self.whole_tape(run_id).await?;
        let replayed = replay(&records)?;
        // A run that was taken up again tells its hooks at its next end.
        if !replayed.machine.is_over() {
            return Ok(None);
        }
        let mut request = None;
        for record in records.iter().rev().filter(|record| record.kind == tape::kind::HOOKS_RUN) {
            if let TapeEntry::Action(Action::RunHooks { occurrence_id, phase, call_id, hooks }) =
                TapeEntry::from_record(record)?
                && phase == RunLifecycleHookPhase::AfterRun
            {
                request = Some(Request { occurrence_id, phase, call_id, hooks });
                break;
            }
        }
        Ok(request.map(|request| AfterRun {
            shared: Arc::clone(&self.shared),
            machine: replayed.machine,
            request,
            tape: LiveTape::new(replayed.last_seq),
            next_seq: replayed.last_seq + 1,
        }))
    }

    /// The run counts as live meanwhile, so that nobody else writes to its tape; it takes no commands.
    fn tell_later(&self, run_id: RunId, after: AfterRun) {
        let (inbox, _) = mpsc::channel(1);
        self.shared.lock_live().insert(run_id, LiveRun { inbox, tape: Arc::clone(&after.tape) });
        let shared = Arc::clone(&self.shared);
        self.shared.drivers.spawn(async move {
            after.carry_out().await;
            shared.lock_live().remove(&run_id);
        });
    }
}
