//! Resuming unfinished runs after a restart.
//!
//! The engine answers first: each unfinished run is registered with an inbox and the end of its tape, and rebuilt in the background by replaying that tape.
//! Whoever sends it something meanwhile waits in the inbox. Only a run whose work the restart interrupted is told so; its machine knows what to begin again and
//! what to ask a person about. A run whose tape does not replay, or whose workspace is gone, is ended with a note instead of being driven by guesswork.

use std::sync::Arc;

use palyra_common::{RunId, SessionId, ToStableError as _};
use palyra_journal::{JournalError, NewRecord};
use palyra_tools::Workspace;
use tokio::sync::{Semaphore, mpsc};
use tracing::Instrument as _;

use super::driver::{Command, Driver, is_unavailable, wait_for_journal};
use super::images::Images;
use super::live_tape::{LiveTape, Weighed};
use super::{Engine, INBOX, LiveRun};
use crate::error::AgentError;
use crate::machine::{Input, Machine, Phase};
use crate::projections;
use crate::replay::replay;
use crate::started_with::Actor;
use crate::tape::{self, EntryRef, Note};

/// Tapes that are replayed at the same time: each is read whole, so more would only cost memory.
const REBUILDS_AT_ONCE: usize = 4;

/// What a rebuilt run consists of, and where its tape ends.
type Rebuilt = (Machine, Arc<Workspace>, Images, u64);

/// A run that is registered and not rebuilt yet.
struct Unfinished {
    run_id: RunId,
    session_id: SessionId,
    inbox: mpsc::Receiver<Command>,
    tape: Arc<LiveTape>,
}

impl Engine {
    /// Registers every unfinished run and begins to rebuild them, oldest first.
    pub(super) async fn recover(&self) -> Result<(), AgentError> {
        let unfinished = self
            .shared
            .options
            .journal
            .read(|reader| {
                let runs = projections::unfinished_runs(reader.connection())?;
                let with_head = |(run_id, session_id)| Ok((run_id, session_id, reader.last_run_seq(run_id)?));
                runs.into_iter().map(with_head).collect::<Result<Vec<_>, JournalError>>()
            })
            .await?;
        let turns = Arc::new(Semaphore::new(REBUILDS_AT_ONCE));
        for (run_id, session_id, last_seq) in unfinished {
            let (sender, inbox) = mpsc::channel(INBOX);
            let tape = LiveTape::new(last_seq);
            self.shared.lock_live().insert(run_id, LiveRun { inbox: sender, tape: Arc::clone(&tape) });
            let (engine, turns) = (self.clone(), Arc::clone(&turns));
            let unfinished = Unfinished { run_id, session_id, inbox, tape };
            self.shared.drivers.spawn(async move { engine.resume_unfinished(unfinished, &turns).await });
        }
        Ok(())
    }

    async fn resume_unfinished(self, unfinished: Unfinished, turns: &Semaphore) {
        let Unfinished { run_id, session_id, inbox, tape } = unfinished;
        let stopping = self.shared.stopping.clone();
        let rebuilt = tokio::select! {
            biased;
            // It is left to the next start.
            () = stopping.cancelled() => None,
            rebuilt = self.rebuild_in_turn(run_id, &tape, turns) => rebuilt,
        };
        let Some((machine, workspace, images, last_seq)) = rebuilt else {
            self.shared.lock_live().remove(&run_id);
            // As when a driver ends: whoever waits for an answer may hold the session's lock.
            drop(inbox);
            return self.run_left(session_id).await;
        };
        // It begins at the first start after the restore was accepted.
        if self.waits_for_acceptance() && matches!(machine.state(), Phase::Queued) {
            self.shared.lock_live().remove(&run_id);
            return;
        }
        let driver = Driver::on_tape(Arc::clone(&self.shared), machine, workspace, last_seq, tape).with_images(images);
        let span = driver.span();
        driver.recover(inbox).instrument(span).await;
    }

    /// The run, unless it was given up or cannot be read.
    async fn rebuild_in_turn(&self, run_id: RunId, tape: &LiveTape, turns: &Semaphore) -> Option<Rebuilt> {
        let _turn = turns.acquire().await.ok()?;
        loop {
            match self.rebuild(run_id).await {
                Ok(rebuilt) => return Some(rebuilt),
                // The run itself is at fault, today and tomorrow.
                Err(error @ (AgentError::BadTape { .. } | AgentError::Tool(_))) => {
                    tracing::error!(%run_id, %error, "the run cannot be resumed");
                    match self.give_up(run_id, error.to_string()).await {
                        Ok(note) => tape.publish(vec![note]),
                        Err(error) if is_unavailable(&error) => {
                            wait_for_journal(run_id, &error).await;
                            continue;
                        }
                        Err(error) => {
                            tracing::error!(%run_id, error = %error.to_stable(), "a run that cannot be resumed could not be ended");
                        }
                    }
                    return None;
                }
                Err(error) if is_unavailable(&error) => wait_for_journal(run_id, &error).await,
                Err(error) => {
                    tracing::error!(%run_id, error = %error.to_stable(), "the run is not resumed before the next start");
                    return None;
                }
            }
        }
    }

    pub(super) async fn rebuild(&self, run_id: RunId) -> Result<Rebuilt, AgentError> {
        let replayed = replay(&self.whole_tape(run_id).await?)?;
        if let Some(difference) = replayed.difference {
            return Err(AgentError::BadTape {
                seq: difference.seq,
                message: "replay does not match the record".to_owned(),
            });
        }
        let spec = replayed.machine.spec().clone();
        let shared = Arc::clone(&self.shared);
        let artifacts = self.shared.options.journal.artifacts().clone();
        let opening = move || {
            let workspace = shared.open_workspace(&spec.workspace, &spec.owner, spec.started_with.workspace)?;
            Ok::<_, AgentError>((workspace, Images::load(&artifacts, &spec)))
        };
        let (workspace, images) =
            tokio::task::spawn_blocking(opening).await.map_err(|error| AgentError::Internal(error.to_string()))??;
        Ok((replayed.machine, workspace, images, replayed.last_seq))
    }

    /// Lets a run go on that failed for want of a model or of money.
    pub(super) async fn take_up_failed(&self, run_id: RunId, input: Input, actor: Actor) -> Result<(), AgentError> {
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
        driver.stage_actor(actor, std::slice::from_ref(&input), at)?;
        let actions = driver.take_up(vec![input]).await?;
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
        driver.take_up(vec![input]).await.map(|_| ())
    }

    /// Ends a run that cannot be driven, with a note that says why. The note is not published to followers.
    pub(super) async fn give_up(&self, run_id: RunId, message: String) -> Result<Weighed, AgentError> {
        let row = self.run(run_id).await?;
        let seq = self.last_seq(run_id).await? + 1;
        let at = self.shared.options.clock.now();
        let note = Note::Unrecoverable { message };
        let entry = EntryRef::Note(&note);
        let payload = entry.payload()?;
        let weighed = Weighed { event: tape::event(run_id, seq, at, entry), bytes: payload.len() };
        let record = NewRecord::new(entry.kind(), at, payload).in_session(row.session_id).on_tape(run_id, seq);
        self.shared.options.journal.append(vec![record]).await?;
        Ok(weighed)
    }
}
