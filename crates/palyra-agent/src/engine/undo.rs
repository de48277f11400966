//! Taking back the file changes of a run.

use std::sync::Arc;

use palyra_common::{Digest, RunId, RunLifecyclePhase};
use palyra_journal::NewRecord;
use palyra_tools::{EffectId, FileChange, Workspace, undo};

use super::Engine;
use crate::error::AgentError;
use crate::tape::{EntryRef, Note};

/// What undoing a run did.
#[derive(Debug, Clone)]
pub struct UndoneRun {
    /// The changes it made, in order.
    pub changes: Vec<FileChange>,
}

impl Engine {
    /// Takes back all file changes of a finished run, or none of them.
    ///
    /// # Errors
    /// When the run is not over, changed nothing, was undone before, or a file was changed since.
    pub async fn undo(&self, run_id: RunId, by: &str) -> Result<UndoneRun, AgentError> {
        if self.run(run_id).await?.phase.is_terminal() {
            self.wait_until_left(run_id).await;
        }
        let details = self.run_details(run_id).await?;
        let refuse = |why| Err(AgentError::CannotUndo { run_id, why });
        if !RunLifecyclePhase::is_terminal(details.row.phase) {
            return refuse("it is not over yet");
        }
        if details.row.undone {
            return refuse("it was undone before");
        }
        if details.changes.is_empty() {
            return refuse("it changed no files");
        }
        let (changes, path) = (details.changes, details.row.workspace.clone());
        let artifacts = Arc::clone(&self.shared.artifacts);
        let effects = Arc::clone(&self.shared.options.effects);
        let protected = self.shared.options.protected.clone();
        // The same id for every attempt: an undo that a crash cut short is finished, not done twice.
        let digest = Digest::of_parts(&[b"undo", run_id.to_string().as_bytes()]);
        let effect_id = EffectId::new(format!("eff-{}", digest.to_hex().get(..32).unwrap_or_default()));
        let report = tokio::task::spawn_blocking(move || {
            let workspace = Workspace::open_protecting(path, &protected)?;
            undo(&changes, &workspace, artifacts.as_ref(), &effects, &effect_id)
        })
        .await
        .map_err(|error| AgentError::Internal(error.to_string()))??;
        let note = Note::Undone { by: by.to_owned(), changes: report.changes.clone() };
        let entry = EntryRef::Note(&note);
        let record = NewRecord::new(entry.kind(), self.shared.options.clock.now(), entry.payload()?)
            .in_session(details.row.session_id)
            .on_tape(run_id, details.last_seq + 1);
        self.shared.options.journal.append(vec![record]).await?;
        Ok(UndoneRun { changes: report.changes })
    }
}
