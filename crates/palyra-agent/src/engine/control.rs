//! Steering runs: cancel, hold, go on, write to them, change what they are meant to do.

use palyra_budget::MicroUsd;
use palyra_common::{InputMode, RunId, RunLifecyclePhase};
use palyra_flow::Mandate;
use palyra_journal::{FirstCommit, NewRecord};
use tokio::sync::oneshot;

use super::Engine;
use super::driver::Command;
use crate::error::AgentError;
use crate::machine::Input;
use crate::projections;
use crate::spec::ModelChoice;
use crate::started_with::Actor;

/// How a run goes on.
#[derive(Debug, Clone, Default)]
pub struct Resumption {
    /// How much it is to spend beyond its budgets; a person is asked first.
    pub over_budget: Option<MicroUsd>,
    /// The model that plans from now on, if it is to be another one.
    pub model: Option<String>,
}

impl Engine {
    /// Ends a run for good.
    ///
    /// # Errors
    /// When there is no such run or it is over.
    pub async fn cancel(&self, run_id: RunId, by: &str, reason: Option<String>) -> Result<(), AgentError> {
        self.send(run_id, Input::Cancel { by: by.to_owned(), reason }).await
    }

    /// Holds a run.
    ///
    /// # Errors
    /// When there is no such run or it is not at work.
    pub async fn pause(&self, run_id: RunId, by: &str) -> Result<(), AgentError> {
        self.send(run_id, Input::Pause { by: by.to_owned() }).await
    }

    /// Lets a held run go on, or one that stopped because its model or its budget did.
    ///
    /// # Errors
    /// When there is no such run, it is not held, or its session has another run at work.
    pub async fn resume(&self, run_id: RunId, actor: &Actor, how: Resumption) -> Result<(), AgentError> {
        let model = match how.model {
            Some(model) => Some(Box::new(self.choose(run_id, &model).await?)),
            None => None,
        };
        let input = Input::Resume { by: actor.by.clone(), over_budget: how.over_budget, model };
        let row = self.run(run_id).await?;
        if row.phase != RunLifecyclePhase::Failed {
            return self.send_all(run_id, vec![input], Some(actor), Vec::new()).await;
        }
        let actor = actor.clone();
        self.to_the_end(|engine| async move { engine.take_up_failed(run_id, input, actor).await }).await
    }

    /// The model of this name, as the agent of the run has it.
    async fn choose(&self, run_id: RunId, model: &str) -> Result<ModelChoice, AgentError> {
        let agent = self.query(move |reader| projections::agent_of(reader.connection(), run_id)).await?;
        let agent = agent.ok_or_else(|| AgentError::RunNotFound(run_id))?;
        Ok(ModelChoice::of(self.shared.options.provider.resolve(&agent, Some(model)).await?))
    }

    /// Writes to a run at work.
    ///
    /// # Errors
    /// When there is no such run, it is over, or there is no text.
    pub async fn steer(&self, run_id: RunId, actor: &Actor, text: String, mode: InputMode) -> Result<(), AgentError> {
        if text.trim().is_empty() {
            return Err(AgentError::EmptyPrompt);
        }
        self.send_all(run_id, vec![Input::UserMessage { text, mode }], Some(actor), Vec::new()).await
    }

    /// Changes what a run is meant to do.
    ///
    /// # Errors
    /// When there is no such run or it is over.
    pub async fn edit_envelope(
        &self,
        run_id: RunId,
        actor: &Actor,
        add: Vec<Mandate>,
        remove: Vec<String>,
    ) -> Result<(), AgentError> {
        let edited = Input::EnvelopeEdited { by: actor.by.clone(), add, remove };
        self.send_all(run_id, vec![edited], Some(actor), Vec::new()).await
    }

    /// Lets something happen to a run that tells it nothing new.
    pub(super) async fn send(&self, run_id: RunId, input: Input) -> Result<(), AgentError> {
        self.send_all(run_id, vec![input], None, Vec::new()).await
    }

    /// Lets several things happen to a run, all or nothing, and commits records of no tape with them.
    pub(super) async fn send_all(
        &self,
        run_id: RunId,
        inputs: Vec<Input>,
        from: Option<&Actor>,
        beside: Vec<NewRecord>,
    ) -> Result<(), AgentError> {
        let over = async || match self.run(run_id).await {
            Ok(row) if row.phase.is_terminal() => {
                AgentError::WrongPhase { run_id, phase: row.phase, why: "it is over" }
            }
            Ok(row) => {
                AgentError::WrongPhase { run_id, phase: row.phase, why: "it is not being driven; restart the daemon" }
            }
            Err(error) => error,
        };
        let Some(live) = self.live(run_id) else { return Err(over().await) };
        // The driver commits in a task of its own, so what goes with the commit is handed over.
        let scope = FirstCommit::current();
        let first = scope.as_ref().and_then(FirstCommit::take);
        let (done, answer) = oneshot::channel();
        let sent =
            match live.inbox.send(Command { inputs, from: from.cloned(), first: first.clone(), beside, done }).await {
                Ok(()) => answer.await.ok(),
                Err(_) => None,
            };
        let result = match sent {
            Some(result) => result,
            None if self.shared.stopping.is_cancelled() => Err(AgentError::Stopping),
            None => Err(over().await),
        };
        if let (Err(_), Some(scope), Some(first)) = (&result, scope, first) {
            scope.put_back(first);
        }
        result
    }
}
