//! Taking up unfinished runs after a restart.
//!
//! Each one is rebuilt by replaying its tape and told that it was interrupted; its machine knows what to begin again and what to ask a person about. A run
//! whose tape does not replay, or whose workspace is gone, is ended with a note instead of being driven by guesswork.

use std::sync::Arc;

use palyra_common::RunId;
use palyra_journal::NewRecord;
use palyra_tools::{ToolError, Workspace};

use super::Engine;
use super::driver::Driver;
use super::images::Images;
use crate::error::AgentError;
use crate::machine::{Input, Machine, Phase};
use crate::projections;
use crate::replay::replay;
use crate::tape::{EntryRef, Note};

impl Engine {
    pub(super) async fn recover(&self) -> Result<(), AgentError> {
        let unfinished = self
            .shared
            .options
            .journal
            .read(|reader| projections::unfinished_runs(reader.connection()).map_err(Into::into))
            .await?;
        for run_id in unfinished {
            match self.rebuild(run_id).await {
                Ok((machine, workspace, images, last_seq)) => {
                    self.take_up(machine, workspace, images, last_seq).await?;
                }
                // The run itself is at fault, today and tomorrow. Anything else may pass, so the start fails instead.
                Err(error @ (AgentError::BadTape { .. } | AgentError::Tool(_))) => {
                    tracing::error!(%run_id, %error, "the run cannot be resumed");
                    self.give_up(run_id, error.to_string()).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn rebuild(&self, run_id: RunId) -> Result<(Machine, Arc<Workspace>, Images, u64), AgentError> {
        let replayed = replay(&self.whole_tape(run_id).await?)?;
        if let Some(difference) = replayed.difference {
            return Err(AgentError::BadTape {
                seq: difference.seq,
                message: "replay does not match the record".to_owned(),
            });
        }
        let spec = replayed.machine.spec().clone();
        let protected = self.shared.options.protected.clone();
        let artifacts = self.shared.options.journal.artifacts().clone();
        let opening = move || {
            let workspace = Workspace::open_protecting(&spec.workspace, &protected)?;
            Ok::<_, ToolError>((workspace, Images::load(&artifacts, &spec)))
        };
        let (workspace, images) =
            tokio::task::spawn_blocking(opening).await.map_err(|error| AgentError::Internal(error.to_string()))??;
        Ok((replayed.machine, Arc::new(workspace), images, replayed.last_seq))
    }

    async fn take_up(
        &self,
        machine: Machine,
        workspace: Arc<Workspace>,
        images: Images,
        last_seq: u64,
    ) -> Result<(), AgentError> {
        let run_id = machine.spec().run_id;
        let queued = matches!(machine.state(), Phase::Queued);
        let mut driver = Driver::new(Arc::clone(&self.shared), machine, workspace, last_seq).with_images(images);
        let actions = if queued { Vec::new() } else { driver.take_up(Input::Recovered).await? };
        driver.spawn(run_id, actions);
        Ok(())
    }

    /// Lets a run go on that failed for want of a model or of money.
    pub(super) async fn take_up_failed(&self, run_id: RunId, input: Input) -> Result<(), AgentError> {
        let session_id = self.run(run_id).await?.session_id;
        let _held = self.shared.locks.session(session_id).await;
        let row = self.run(run_id).await?;
        let wrong = |why| AgentError::WrongPhase { run_id, phase: row.phase, why };
        let at_work =
            move |db: &rusqlite::Connection| projections::run_at_work(db, session_id).map(|run| run.is_some());
        if self.shared.options.journal.read(move |reader| at_work(reader.connection()).map_err(Into::into)).await? {
            return Err(wrong("another run of its session is active"));
        }
        self.wait_until_left(run_id).await;
        let (machine, workspace, images, last_seq) = self.rebuild(run_id).await?;
        if !machine.may_be_taken_up() {
            return Err(wrong("it is over"));
        }
        let at = self.shared.options.clock.now();
        if let Err(refused) = machine.clone().step(input.clone(), at) {
            return Err(AgentError::rejected(run_id, &refused));
        }
        let mut driver = Driver::new(Arc::clone(&self.shared), machine, workspace, last_seq).with_images(images);
        let actions = driver.take_up(input).await?;
        driver.spawn(run_id, actions);
        Ok(())
    }

    /// Puts something on the tape of a run that failed and may be taken up again. The caller holds its session.
    pub(super) async fn note_on_failed(&self, run_id: RunId, input: Input) -> Result<(), AgentError> {
        let (machine, workspace, images, last_seq) = self.rebuild(run_id).await?;
        let at = self.shared.options.clock.now();
        if let Err(refused) = machine.clone().step(input.clone(), at) {
            return Err(AgentError::rejected(run_id, &refused));
        }
        let mut driver = Driver::new(Arc::clone(&self.shared), machine, workspace, last_seq).with_images(images);
        driver.take_up(input).await.map(|_| ())
    }

    /// Ends a run that cannot be driven, with a note that says why.
    async fn give_up(&self, run_id: RunId, message: String) -> Result<(), AgentError> {
        let row = self.run(run_id).await?;
        let last_seq = self.last_seq(run_id).await?;
        let note = Note::Unrecoverable { message };
        let entry = EntryRef::Note(&note);
        let record = NewRecord::new(entry.kind(), self.shared.options.clock.now(), entry.payload()?)
            .in_session(row.session_id)
            .on_tape(run_id, last_seq + 1);
        self.shared.options.journal.append(vec![record]).await?;
        Ok(())
    }
}
