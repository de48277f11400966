//! One auxiliary task: from its place in the line to its last record.
//!
//! A task works in a task of its own that writes all its records, so that none is missing when whoever waits goes away. Whoever waits holds the only
//! thing that keeps it going: when that is dropped, the task is cancelled.

use std::sync::Arc;

use palyra_common::{AuxiliaryTaskId, AuxiliaryTaskState, Digest, Label, RunId, SessionId, ToStableError as _};
use palyra_journal::NewRecord;
use palyra_models::{Answering, Usage};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::ask::ask;
use super::records::{TaskBill, TaskEnded, TaskPending, TaskRunning, kind, payer_run};
use crate::auxiliary::{AuxiliaryError, AuxiliaryInput, AuxiliaryOutput};
use crate::canonical::canonical_json;
use crate::engine::Shared;
use crate::error::AgentError;
use crate::machine::Cost;
use crate::spec::RunSpec;

/// A task to be carried out.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Task {
    pub(in crate::engine) id: AuxiliaryTaskId,
    pub(in crate::engine) session_id: SessionId,
    pub(in crate::engine) run_id: Option<RunId>,
    pub(in crate::engine) turn: u32,
    pub(in crate::engine) owner: String,
    pub(in crate::engine) agent: String,
    /// Model to use; empty means that the provider chooses.
    pub(in crate::engine) model: String,
    pub(in crate::engine) input: AuxiliaryInput,
    /// Join of the labels of everything in the input.
    pub(in crate::engine) label: Label,
    pub(in crate::engine) keep: Keep,
}

/// What the last record of a task keeps of its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Keep {
    /// All of it.
    Output,
    /// Its digest: it is recorded elsewhere.
    Digest,
}

/// What a task gave.
#[derive(Debug, Clone, PartialEq)]
pub struct AuxiliaryDone {
    /// The task.
    pub task_id: AuxiliaryTaskId,
    /// What it gave.
    pub output: AuxiliaryOutput,
    /// Label of the output: the join of the labels of everything that the task was given.
    pub label: Label,
    /// Who answered.
    pub answering: Option<Answering>,
    /// Tokens used by all its calls.
    pub usage: Usage,
    /// What they cost.
    pub cost: Cost,
}

impl Task {
    /// A task for a run. What it gives is recorded by the run.
    pub(in crate::engine) fn of_run(spec: &RunSpec, turn: u32, input: AuxiliaryInput, label: Label) -> Self {
        Self {
            id: AuxiliaryTaskId::generate(),
            session_id: spec.session_id,
            run_id: Some(spec.run_id),
            turn,
            owner: spec.owner.clone(),
            agent: spec.agent.clone(),
            model: spec.model.name.clone(),
            input,
            label,
            keep: Keep::Digest,
        }
    }

    /// The run that its calls are made and paid for.
    pub(super) fn payer_run(&self) -> RunId {
        payer_run(self.run_id, self.id)
    }

    fn pending(&self, provider: String, input: Digest) -> TaskPending {
        TaskPending {
            task_id: self.id,
            session_id: self.session_id,
            run_id: self.run_id,
            owner: self.owner.clone(),
            agent: self.agent.clone(),
            kind: self.input.kind(),
            label: self.label.clone(),
            budget_tokens: self.input.budget_tokens(),
            provider,
            model: self.model.clone(),
            input,
        }
    }
}

/// Carries out a task and waits for it. Dropping this cancels the task.
pub(in crate::engine) fn carry_out(
    shared: &Arc<Shared>,
    task: Task,
) -> impl Future<Output = Result<AuxiliaryDone, AgentError>> + Send + use<> {
    let shared = Arc::clone(shared);
    async move {
        let id = task.id;
        let cancel = CancellationToken::new();
        let work = Work { shared: Arc::clone(&shared), task, cancel: cancel.clone() };
        let span = tracing::error_span!("auxiliary_task", task_id = %id);
        // A task of its own: if whoever waits is gone, the records are written all the same.
        let working = shared.drivers.spawn(work.finish().instrument(span));
        let _cancelled_when_dropped = cancel.drop_guard();
        match working.await {
            Ok(outcome) => outcome,
            Err(died) if died.is_panic() => Err(AgentError::Internal(format!("the work on {id} was interrupted"))),
            // The runtime itself is going. Saying "cancelled" now could end a run that its next start goes on with.
            Err(_) => std::future::pending().await,
        }
    }
}

struct Work {
    shared: Arc<Shared>,
    task: Task,
    cancel: CancellationToken,
}

impl Work {
    async fn finish(mut self) -> Result<AuxiliaryDone, AgentError> {
        self.task.input.check()?;
        if self.shared.stopping.is_cancelled() {
            return Err(AgentError::Stopping);
        }
        let shared = Arc::clone(&self.shared);
        // A run waits with everything that it does for a journal that cannot be written now; whoever asks for a task alone is told.
        if self.task.run_id.is_none() {
            shared.options.journal.admission()?;
        }
        let place = shared.auxiliary.join(self.task.session_id)?;
        for text in self.task.input.texts_mut() {
            shared.options.safety.before_model(text);
        }
        let provider = shared.options.provider.describe().name;
        let pending = self.task.pending(provider, digest_of(&self.task.input));
        self.record(kind::PENDING, &pending, self.cancelled()).await?;
        let mut bill = TaskBill::default();
        let worked = async {
            // Held until the task is over.
            let _turn = place.turn().await;
            self.record(kind::RUNNING, &TaskRunning { task_id: self.task.id }, self.cancelled()).await?;
            ask(&shared.options, &self.task, &mut bill).await.map_err(AgentError::from)
        };
        let outcome = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(AuxiliaryError::Cancelled(self.task.id).into()),
            () = shared.stopping.cancelled() => Err(AuxiliaryError::Cancelled(self.task.id).into()),
            outcome = worked => outcome,
        };
        let ended = self.ended(&outcome, bill.clone());
        // Also for whoever left: what it cost is in it.
        self.record(ended.kind(), &ended, shared.stopping.cancelled()).await?;
        outcome.map(|output| AuxiliaryDone {
            task_id: self.task.id,
            output,
            label: self.task.label.clone(),
            answering: bill.answering,
            usage: bill.usage,
            cost: bill.cost,
        })
    }

    fn ended(&self, outcome: &Result<AuxiliaryOutput, AgentError>, bill: TaskBill) -> TaskEnded {
        let (state, output, error) = match outcome {
            Ok(output) => (AuxiliaryTaskState::Succeeded, Some(output.to_value()), None),
            Err(AgentError::Auxiliary(error @ AuxiliaryError::Cancelled(_))) => {
                (AuxiliaryTaskState::Cancelled, None, Some(error.to_stable()))
            }
            Err(error) => (AuxiliaryTaskState::Failed, None, Some(error.to_stable())),
        };
        TaskEnded {
            task_id: self.task.id,
            run_id: self.task.run_id,
            agent: self.task.agent.clone(),
            state,
            digest: output.as_ref().map(|output| Digest::of(canonical_json(output).as_bytes())),
            output: output.filter(|_| self.task.keep == Keep::Output),
            error,
            bill,
        }
    }

    /// Ends when nobody wants the task any more or the daemon stops.
    async fn cancelled(&self) {
        tokio::select! {
            () = self.cancel.cancelled() => {}
            () = self.shared.stopping.cancelled() => {}
        }
    }

    async fn record(
        &self,
        kind: &'static str,
        payload: &impl Serialize,
        give_up: impl Future<Output = ()>,
    ) -> Result<(), AgentError> {
        let payload = serde_json::to_vec(payload).map_err(|error| AgentError::Internal(error.to_string()))?;
        let options = &self.shared.options;
        let record = NewRecord::new(kind, options.clock.now(), payload).in_session(self.task.session_id);
        options.journal.append_patiently(vec![record], give_up).await?;
        Ok(())
    }
}

fn digest_of(input: &AuxiliaryInput) -> Digest {
    let value = match input {
        AuxiliaryInput::Summary(input) => serde_json::to_value(input),
        AuxiliaryInput::RecallSearch(input) => serde_json::to_value(input),
        AuxiliaryInput::Classification(input) => serde_json::to_value(input),
        AuxiliaryInput::Extraction(input) => serde_json::to_value(input),
        AuxiliaryInput::ObjectiveJudge(input) => serde_json::to_value(input),
        AuxiliaryInput::Vision(input) => serde_json::to_value(input),
    };
    Digest::of(canonical_json(&value.unwrap_or_default()).as_bytes())
}
