//! Auxiliary tasks at work: their line, their records, their calls.
//!
//! What is asked and what may be answered is in [`crate::auxiliary`]. A task waits in `line`, is carried out by `task`, which writes its records, and asks its
//! model through `ask`, which pays for it like any other call. Runs use tasks for summaries and for looking into variables; everybody else asks for them here.
//!
//! A task is never taken up again: whoever wanted it is gone with the process, and a run that still needs it begins another. So the start of an engine
//! cancels what its predecessor left unfinished.

mod ask;
mod line;
mod records;
mod task;

use std::sync::Arc;

use palyra_common::{
    AuxiliaryTaskId, AuxiliaryTaskState, Confidentiality, Integrity, Label, SessionId, ToStableError as _,
};

pub(crate) use records::{TaskBill, TaskEnded, TaskPending, TaskRunning, kind, payer_run};
pub use task::AuxiliaryDone;

pub(super) use line::Line;
pub(super) use task::{Keep, Task, carry_out};

use super::Engine;
use crate::auxiliary::{AuxiliaryError, AuxiliaryInput};
use crate::error::AgentError;
use crate::projections::{self, AuxiliaryFilter, AuxiliaryRow};
use crate::session::LOCAL_USER;
use crate::spec::MAIN_AGENT;

/// Key of the session that holds the tasks that an owner asked for outside of any other.
const SESSION_KEY: &str = "auxiliary";
const SESSION_TITLE: &str = "Auxiliary tasks";

/// A task that somebody asks for.
#[derive(Debug, Clone)]
pub struct NewAuxiliaryTask {
    /// What it is given.
    pub input: AuxiliaryInput,
    /// The labels of everything in the input. Of what nobody knows, the worst is assumed.
    pub labels: Vec<Label>,
    /// The session it belongs to; if none, the owner's session for such tasks.
    pub session_id: Option<SessionId>,
    /// Who asks; the local user if nobody is named.
    pub owner: Option<String>,
    /// Model to use instead of the one that fits the kind.
    pub model: Option<String>,
}

impl Engine {
    /// Carries out an auxiliary task and waits for it. Dropping this cancels it.
    ///
    /// # Errors
    /// When the input is wrong, the line is full, the model fails or may not be asked, or no answer fits the contract.
    pub async fn run_auxiliary(&self, new: NewAuxiliaryTask) -> Result<AuxiliaryDone, AgentError> {
        new.input.check()?;
        let owner = new.owner.unwrap_or_else(|| LOCAL_USER.to_owned());
        let session_id = match new.session_id {
            Some(id) => self.session(id).await?.session_id,
            None => {
                let (row, _) = self.resolve_session(&owner, SESSION_KEY, Some(SESSION_TITLE.to_owned())).await?;
                row.session_id
            }
        };
        let label = new.labels.iter().cloned().reduce(|joined, label| joined.join(&label));
        let task = Task {
            id: AuxiliaryTaskId::generate(),
            session_id,
            run_id: None,
            turn: 1,
            owner,
            agent: MAIN_AGENT.to_owned(),
            model: new.model.unwrap_or_default(),
            input: new.input,
            label: label.unwrap_or(Label::new(Integrity::Untrusted, Confidentiality::Private)),
            keep: Keep::Output,
        };
        carry_out(&self.shared, task).await
    }

    /// One auxiliary task.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn auxiliary_task(&self, id: AuxiliaryTaskId) -> Result<AuxiliaryRow, AgentError> {
        self.query(move |reader| projections::auxiliary_task(reader.connection(), id))
            .await?
            .ok_or_else(|| AuxiliaryError::NotFound(id).into())
    }

    /// Auxiliary tasks, newest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn auxiliary_tasks(&self, filter: AuxiliaryFilter) -> Result<Vec<AuxiliaryRow>, AgentError> {
        self.query(move |reader| projections::auxiliary_tasks(reader.connection(), &filter)).await
    }

    /// Cancels what an earlier process left unfinished. Money that was held for its calls stays counted: they may have been made.
    pub(super) async fn cancel_orphaned_tasks(&self) -> Result<(), AgentError> {
        let orphaned = self.query(|reader| projections::unfinished_auxiliary(reader.connection())).await?;
        let mut records = Vec::with_capacity(orphaned.len());
        for row in orphaned {
            let ended = TaskEnded {
                task_id: row.task_id,
                run_id: row.run_id,
                agent: row.agent,
                state: AuxiliaryTaskState::Cancelled,
                digest: None,
                output: None,
                error: Some(AuxiliaryError::Cancelled(row.task_id).to_stable()),
                bill: TaskBill::default(),
            };
            records.push(self.session_record(ended.kind(), row.session_id, &ended)?);
        }
        if records.is_empty() {
            return Ok(());
        }
        match self.shared.options.journal.append(records.clone()).await {
            // A start on a disk that fails answers all the same; until it is on record, lists show these tasks as under way.
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "cannot record that a restart cancelled auxiliary tasks; trying again");
                let shared = Arc::clone(&self.shared);
                self.shared.drivers.spawn(async move {
                    let given_up = shared.stopping.cancelled();
                    if let Err(error) = shared.options.journal.append_patiently(records, given_up).await {
                        tracing::warn!(%error, "the next start cancels these auxiliary tasks");
                    }
                });
                Ok(())
            }
            recorded => Ok(recorded.map(drop)?),
        }
    }
}
