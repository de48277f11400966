//! Taking back the file changes of a run, or some of them.

use std::sync::Arc;

use palyra_common::{Digest, RunId, RunLifecyclePhase, UndoConflictMode};
use palyra_journal::NewRecord;
use palyra_tools::{EffectId, FileChange, RemainingFile, UndoRequest, UndoSelection, undo};

use super::Engine;
use crate::error::AgentError;
use crate::started_with::WorkspaceAuthority;
use crate::tape::{EntryRef, Note, TapeEntry};

/// What to undo of a run.
#[derive(Debug, Clone, Default)]
pub struct UndoOptions {
    /// Files and directories; everything if none is named.
    pub paths: Vec<String>,
    /// What happens to files that are not, or not only, what the run made of them.
    pub conflicts: UndoConflictMode,
}

/// What undoing a run did.
#[derive(Debug, Clone)]
pub struct UndoneRun {
    /// The changes it made, in order.
    pub changes: Vec<FileChange>,
    /// Files of the run that are still as they were found.
    pub remaining: Vec<RemainingFile>,
}

impl Engine {
    /// What undoing the run did, if it was undone.
    ///
    /// # Errors
    /// When its tape cannot be read.
    pub async fn undone(&self, run_id: RunId) -> Result<Option<UndoneRun>, AgentError> {
        for record in self.whole_tape(run_id).await?.iter().rev() {
            if let TapeEntry::Note(Note::Undone { changes, remaining, .. }) = TapeEntry::from_record(record)? {
                return Ok(Some(UndoneRun { changes, remaining }));
            }
        }
        Ok(None)
    }

    /// Takes back file changes of a finished run that were not taken back before.
    ///
    /// # Errors
    /// When the run is not over, changed nothing (or nothing at a path that was named), was undone before, whoever asks may not work where it did, or a file was
    /// changed since and the options do not say what happens to it.
    pub async fn undo(
        &self,
        run_id: RunId,
        options: UndoOptions,
        by: &str,
        authority: WorkspaceAuthority,
    ) -> Result<UndoneRun, AgentError> {
        if self.run(run_id).await?.phase.is_terminal() {
            self.wait_until_left(run_id).await;
        }
        let details = self.run_details(run_id).await?;
        let refuse = |why: &str| Err(AgentError::CannotUndo { run_id, why: why.to_owned() });
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
        let (run, turn) = (run_id.to_string(), details.undos.to_string());
        let parts: &[&[u8]] = &[b"undo", run.as_bytes(), turn.as_bytes()];
        // The first has the id that earlier versions gave it.
        let digest = Digest::of_parts(if details.undos == 0 { parts.get(..2).unwrap_or(parts) } else { parts });
        let effect_id = EffectId::new(format!("eff-{}", digest.to_hex().get(..32).unwrap_or_default()));
        let undone = details.undone_files;
        let report = tokio::task::spawn_blocking(move || {
            let workspace = shared.open_workspace(&path, &principal, authority)?;
            let selection = if options.paths.is_empty() {
                None
            } else {
                let selection = UndoSelection::parse(&options.paths, &workspace)?;
                if let Some(path) = selection.without_changes(&changes) {
                    let why = format!("it changed nothing at `{path}`");
                    return Err(AgentError::CannotUndo { run_id, why });
                }
                Some(selection)
            };
            let request = UndoRequest { changes: &changes, undone, selection, conflicts: options.conflicts };
            Ok::<_, AgentError>(undo(&request, &workspace, artifacts.as_ref(), &effects, &effect_id)?)
        })
        .await
        .map_err(|error| AgentError::Internal(error.to_string()))??;
        let note =
            Note::Undone { by: by.to_owned(), changes: report.changes.clone(), remaining: report.remaining.clone() };
        let entry = EntryRef::Note(&note);
        let record = NewRecord::new(entry.kind(), self.shared.options.clock.now(), entry.payload()?)
            .in_session(details.row.session_id)
            .on_tape(run_id, details.last_seq + 1);
        self.shared.options.journal.append(vec![record]).await?;
        Ok(UndoneRun { changes: report.changes, remaining: report.remaining })
    }
}
