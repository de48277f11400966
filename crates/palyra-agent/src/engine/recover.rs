//! Taking up unfinished runs after a restart.
//!
//! Each one is rebuilt by replaying its tape and told that it was interrupted; its machine knows what to begin again and what to ask a person about. A run
//! whose tape does not replay is ended with a note instead of being driven by guesswork.

use std::sync::Arc;

use palyra_common::RunId;
use palyra_tools::Workspace;

use super::Engine;
use super::driver::Driver;
use crate::error::AgentError;
use crate::machine::Phase;
use crate::projections;
use crate::replay::{Replayed, replay};

impl Engine {
    pub(super) async fn recover(&self) -> Result<(), AgentError> {
        let unfinished = self
            .shared
            .options
            .journal
            .read(|reader| projections::unfinished_runs(reader.connection()).map_err(Into::into))
            .await?;
        for run_id in unfinished {
            if let Err(error) = self.recover_run(run_id).await {
                tracing::error!(%run_id, %error, "the run could not be taken up again");
            }
        }
        Ok(())
    }

    async fn recover_run(&self, run_id: RunId) -> Result<(), AgentError> {
        let records = self.whole_tape(run_id).await?;
        let replayed = replay(&records)?;
        let workspace = open_workspace(&replayed).await;
        let last_seq = replayed.last_seq;
        let difference = replayed.difference.clone();
        let workspace = match (difference, workspace) {
            (None, Ok(workspace)) => workspace,
            (Some(difference), _) => {
                let message = format!("its tape does not replay from record {} on", difference.seq);
                return self.give_up(replayed, last_seq, message).await;
            }
            (None, Err(error)) => return self.give_up(replayed, last_seq, error.to_string()).await,
        };
        let queued = matches!(replayed.machine.state(), Phase::Queued);
        let mut driver = Driver::new(Arc::clone(&self.shared), replayed.machine, workspace, last_seq);
        let actions = if queued { Vec::new() } else { driver.resume_after_restart().await? };
        driver.spawn(run_id, actions);
        Ok(())
    }

    async fn give_up(&self, replayed: Replayed, last_seq: u64, message: String) -> Result<(), AgentError> {
        let workspace = Arc::new(Workspace::open("/")?);
        Driver::new(Arc::clone(&self.shared), replayed.machine, workspace, last_seq).give_up(message).await
    }
}

async fn open_workspace(replayed: &Replayed) -> Result<Arc<Workspace>, AgentError> {
    let path = replayed.machine.spec().workspace.clone();
    tokio::task::spawn_blocking(move || Ok(Arc::new(Workspace::open(path)?)))
        .await
        .map_err(|error| AgentError::Internal(error.to_string()))?
}
