//! Taking back the file changes of a run.

use std::sync::Arc;

use palyra_common::{Digest, RunId, RunLifecyclePhase};
use palyra_journal::NewRecord;
use palyra_tools::{EffectId, FileChange, UndoRequest, undo};

use super::Engine;
use crate::error::AgentError;
use crate::started_with::WorkspaceAuthority;
use crate::tape::{EntryRef, Note, TapeEntry};

/// What undoing a run did.
#[derive(Debug, Clone)]
pub struct UndoneRun {
    /// The changes it made, in order.
    pub changes: Vec<FileChange>,
}

impl Engine {
    /// What undoing the run did, if it was undone.
    ///
    /// # Errors
    /// When its tape cannot be read.
    pub async fn undone(&self, run_id: RunId) -> Result<Option<UndoneRun>, AgentError> {
        for record in self.whole_tape(run_id).await?.iter().rev() {
            if let TapeEntry::Note(Note::Undone { changes, .. }) = TapeEntry::from_record(record)? {
                return Ok(Some(UndoneRun { changes }));
            }
        }
        Ok(None)
    }

    /// Takes back all file changes of a finished run, or none of them.
    ///
    /// # Errors
    /// When the run is not over, changed nothing, was undone before, a file was changed since, or whoever asks may not work where it did.
    pub async fn undo(&self, run_id: RunId, by: &str, authority: WorkspaceAuthority) -> Result<UndoneRun, AgentError> {
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
        let (shared, principal) = (Arc::clone(&self.shared), by.to_owned());
        // The same id for every attempt: an undo that a crash cut short is finished, not done twice.
        let digest = Digest::of_parts(&[b"undo", run_id.to_string().as_bytes()]);
        let effect_id = EffectId::new(format!("eff-{}", digest.to_hex().get(..32).unwrap_or_default()));
        let report = tokio::task::spawn_blocking(move || {
            let workspace = shared.open_workspace(&path, &principal, authority)?;
            Ok::<_, AgentError>(undo(
                &UndoRequest::all_or_nothing(&changes),
                &workspace,
                artifacts.as_ref(),
                &effects,
                &effect_id,
            )?)
        })
        .await
        .map_err(|error| AgentError::Internal(error.to_string()))??;
        let note = Note::Undone { by: by.to_owned(), changes: report.changes.clone(), remaining: report.remaining };
        let entry = EntryRef::Note(&note);
        let record = NewRecord::new(entry.kind(), self.shared.options.clock.now(), entry.payload()?)
            .in_session(details.row.session_id)
            .on_tape(run_id, details.last_seq + 1);
        self.shared.options.journal.append(vec![record]).await?;
        Ok(UndoneRun { changes: report.changes })
    }
}
