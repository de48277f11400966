//! Working off what waits in a session, one run at a time.
//!
//! Looked at whenever a run leaves, an input comes, a session is taken out of the archive, or the daemon starts. Inputs that no run can be made of, such as
//! one that refers to a file that is gone, are recorded as failed, so that what is behind them goes on.
//!
//! Images are looked at without the session's lock, so that nobody who uses the session waits for the model that looks. What was seen counts only if
//! the same inputs are still next when the lock is held again.

use std::sync::Arc;
use std::time::Duration;

use palyra_common::{ErrorCategory, InputMode, RunId, SessionId, ToStableError as _};

use crate::engine::create::NewRun;
use crate::engine::images::Looked;
use crate::engine::{Engine, Shared, files};
use crate::error::AgentError;
use crate::projections::{self, QueuedInput};
use crate::session::{InputsFailed, InputsTaken, Taken, kind};
use crate::spec::OutsideSender;
use crate::started_with::StartedWith;

/// Pause before inputs are tried again that cannot be taken now, such as on a full disk.
const TRY_AGAIN: Duration = Duration::from_millis(500);

impl Engine {
    /// A run has left; whatever waited for it goes on.
    ///
    /// The run's last record was committed before this looks at the set, and an input is in the set before it is on the journal and before anybody
    /// looks for a run at work once more. So one of the two sees the other.
    pub(in crate::engine) async fn run_left(self, session_id: SessionId) {
        if self.shared.lock_waiting().contains(&session_id) {
            self.work_off(session_id).await;
        }
    }

    /// Takes up all queues after a restart.
    pub(in crate::engine) async fn work_off_all(&self) -> Result<(), AgentError> {
        let sessions = self.query(|reader| projections::sessions_with_waiting_inputs(reader.connection())).await?;
        for session_id in sessions {
            self.shared.lock_waiting().insert(session_id);
            self.work_off_later(session_id);
        }
        Ok(())
    }

    /// Looks at a queue without making the caller wait.
    pub(super) fn work_off_later(&self, session_id: SessionId) {
        let engine = self.clone();
        self.shared.drivers.spawn(async move { engine.work_off(session_id).await });
    }

    async fn work_off(&self, session_id: SessionId) {
        let mut seen = None;
        loop {
            let session = self.shared.locks.session(session_id).await;
            let worked = self.work_off_held(session_id, seen.take()).await;
            drop(session);
            match worked {
                Ok(Worked::Through) => return,
                Ok(Worked::LookFirst(ahead)) => seen = Some(self.look_ahead(*ahead).await),
                Err(_) if self.shared.stopping.is_cancelled() => return,
                Err(error) if error.to_stable().category == ErrorCategory::Availability => {
                    tracing::warn!(%session_id, error = %error.to_stable(), "the session's queue cannot be processed now");
                    tokio::select! {
                        () = self.shared.stopping.cancelled() => return,
                        () = tokio::time::sleep(TRY_AGAIN) => {}
                    }
                }
                Err(error) => {
                    tracing::error!(%session_id, error = %error.to_stable(), "the session's queue could not be processed");
                    return;
                }
            }
        }
    }

    /// Begins the next run of a session, if none is at work and something waits. The caller holds the session's lock.
    pub(super) async fn work_off_held(&self, session_id: SessionId, seen: Option<Seen>) -> Result<Worked, AgentError> {
        if self.shared.held_queues.contains(&session_id) {
            return Ok(Worked::Through);
        }
        // Whoever looked is no longer at it: from here on the lock keeps others away.
        let mut seen = seen.map(|Seen { next, run_id, looked, alone }| {
            drop(alone);
            (next, run_id, looked)
        });
        loop {
            let (session, at_work, waiting) = self
                .query(move |reader| {
                    let db = reader.connection();
                    Ok((
                        projections::session(db, session_id)?,
                        projections::run_at_work(db, session_id)?,
                        projections::waiting_inputs(db, session_id)?,
                    ))
                })
                .await?;
            if waiting.is_empty() {
                self.shared.lock_waiting().remove(&session_id);
                return Ok(Worked::Through);
            }
            let Some(row) = session.map(|session| session.row).filter(|row| row.archived_at.is_none()) else {
                return Ok(Worked::Through);
            };
            if at_work.is_some() {
                return Ok(Worked::Through);
            }
            let Some(next) = Next::of(waiting) else { return Ok(Worked::Through) };
            let workspace = self.workspace_for(&row, next.workspace.as_deref(), next.agent.as_deref()).await;
            let begun = match (workspace, seen.take().filter(|(seen, ..)| *seen == next)) {
                (Err(error), _) => Err(error),
                (Ok(workspace), Some((_, run_id, looked))) => match looked {
                    Ok(looked) => self.begin_next(session_id, &next, workspace, (run_id, looked)).await,
                    Err(error) => Err(error),
                },
                (Ok(workspace), None) if files::has_references(&next.text) => {
                    let Some(alone) = Alone::begin(&self.shared, session_id) else { return Ok(Worked::Through) };
                    return Ok(Worked::LookFirst(Box::new(Ahead {
                        new: next.run(session_id, workspace),
                        next,
                        alone,
                    })));
                }
                (Ok(workspace), None) => {
                    self.begin_next(session_id, &next, workspace, (RunId::generate(), Looked::default())).await
                }
            };
            match begun {
                Ok(()) => return Ok(Worked::Through),
                Err(error) if is_for_good(&error) => self.give_up_inputs(session_id, next.input_ids, &error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Has looked at what the next run refers to. Whoever changes the session meanwhile is not kept waiting.
    async fn look_ahead(&self, Ahead { next, new, alone }: Ahead) -> Seen {
        let run_id = RunId::generate();
        let looked = self.look_beforehand(&new, run_id).await;
        Seen { next, run_id, looked, alone }
    }

    async fn begin_next(
        &self,
        session_id: SessionId,
        next: &Next,
        workspace: String,
        (run_id, looked): (RunId, Looked),
    ) -> Result<(), AgentError> {
        let taken = InputsTaken { session_id, input_ids: next.input_ids.clone(), run_id, how: Taken::Started };
        let record = self.session_record(kind::INPUT_TAKEN, session_id, &taken)?;
        self.create_run_held(next.run(session_id, workspace), run_id, vec![record], looked).await.map(|_| ())
    }

    async fn give_up_inputs(
        &self,
        session_id: SessionId,
        input_ids: Vec<String>,
        error: &AgentError,
    ) -> Result<(), AgentError> {
        let error = error.to_stable();
        tracing::warn!(%session_id, %error, "cannot start a run from the queued input");
        let failed = InputsFailed { session_id, input_ids, error };
        let record = self.session_record(kind::INPUT_FAILED, session_id, &failed)?;
        self.shared.options.journal.append(vec![record]).await?;
        Ok(())
    }
}

/// Whether the inputs themselves are at fault, today and tomorrow.
fn is_for_good(error: &AgentError) -> bool {
    matches!(
        error.to_stable().category,
        ErrorCategory::Validation | ErrorCategory::NotFound | ErrorCategory::Policy | ErrorCategory::Conflict
    )
}

/// How far the work on a queue came.
pub(super) enum Worked {
    /// As far as it goes for now.
    Through,
    /// What is next refers to files, which may be images; they are looked at before the session is locked again.
    LookFirst(Box<Ahead>),
}

/// A run that begins once its images were looked at.
pub(super) struct Ahead {
    next: Next,
    new: NewRun,
    alone: Alone,
}

/// What came of looking.
pub(super) struct Seen {
    next: Next,
    /// The run that the look is billed to.
    run_id: RunId,
    looked: Result<Looked, AgentError>,
    alone: Alone,
}

/// Held while somebody looks at what is next in a session, so that nobody else has the same looked at.
struct Alone {
    shared: Arc<Shared>,
    session_id: SessionId,
}

impl Alone {
    /// None if somebody is at it; they work the queue off when they are done. The caller holds the session's lock.
    fn begin(shared: &Arc<Shared>, session_id: SessionId) -> Option<Self> {
        let is_first = shared.lock_looking().insert(session_id);
        is_first.then(|| Self { shared: Arc::clone(shared), session_id })
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.shared.lock_looking().remove(&self.session_id);
    }
}

/// What the next run is made of.
#[derive(Debug, PartialEq, Eq)]
struct Next {
    input_ids: Vec<String>,
    text: String,
    workspace: Option<String>,
    by: String,
    given_with: StartedWith,
    agent: Option<String>,
    from: Option<OutsideSender>,
}

impl Next {
    /// The run of it.
    fn run(&self, session_id: SessionId, workspace: String) -> NewRun {
        NewRun {
            prompt: self.text.clone(),
            workspace,
            session_id: Some(session_id),
            owner: Some(self.by.clone()),
            started_with: self.given_with.clone(),
            agent: self.agent.clone(),
            from: self.from.clone(),
            ..NewRun::default()
        }
    }

    /// The first that waits. If it was collected, everything else that the same person collected for the same directory goes with it: texts of several
    /// people are never put into one person's run.
    fn of(waiting: Vec<QueuedInput>) -> Option<Self> {
        let mut waiting = waiting.into_iter();
        let first = waiting.next()?;
        let mut next = Self {
            input_ids: vec![first.input_id],
            text: first.text,
            workspace: first.workspace,
            by: first.by,
            given_with: first.given_with,
            agent: first.agent,
            from: first.from,
        };
        if first.mode == InputMode::Collect {
            for other in waiting.filter(|other| other.mode == InputMode::Collect) {
                let alike = (&other.by, &other.workspace, &other.agent) == (&next.by, &next.workspace, &next.agent);
                if alike && other.given_with == next.given_with && next.from.is_none() && other.from.is_none() {
                    next.input_ids.push(other.input_id);
                    next.text.push_str("\n\n");
                    next.text.push_str(&other.text);
                }
            }
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::Timestamp;

    use super::*;

    fn input(id: &str, mode: InputMode, by: &str) -> QueuedInput {
        QueuedInput {
            input_id: id.into(),
            session_id: SessionId::from_u128(1),
            text: format!("text {id}"),
            mode,
            workspace: None,
            by: by.into(),
            given_with: StartedWith::default(),
            at: Timestamp(0),
            agent: None,
            from: None,
        }
    }

    #[test]
    fn only_what_one_person_collected_goes_together() {
        use InputMode::{Collect, FollowUp};
        let waiting = vec![
            input("a", Collect, "ada"),
            input("b", FollowUp, "ada"),
            input("c", Collect, "bob"),
            input("d", Collect, "ada"),
        ];
        let next = Next::of(waiting.clone()).unwrap();
        assert_eq!((next.input_ids, next.text.as_str()), (vec!["a".to_owned(), "d".into()], "text a\n\ntext d"));
        let next = Next::of(waiting[1..].to_vec()).unwrap();
        assert_eq!(next.input_ids, ["b"], "a follow-up is a run of its own");
        assert_eq!(Next::of(Vec::new()), None);
    }
}
