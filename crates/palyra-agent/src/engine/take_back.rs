//! The change set of a run, from outside of the machine: how it is taken back.

use std::pin::Pin;
use std::sync::Arc;

use palyra_common::{Digest, ErrorCategory, RunId, StableErrorEnvelope, ToStableError as _, UndoConflictMode};
use palyra_tools::{EffectId, FileChange, UndoRequest, UndoSelection, Workspace, undo};

use super::{Engine, Shared};
use crate::machine::{Input, Machine, TookBack};
use crate::tape::Note;

/// Who took it back, on the tape.
const BY: &str = "palyra";

/// A change set that is being taken back.
pub(super) struct TakeBack(Pin<Box<dyn Future<Output = TakenBack> + Send>>);

/// What came of it.
pub(super) struct TakenBack {
    pub(super) input: Input,
    /// What was done to the files, if anything was.
    pub(super) note: Option<Note>,
}

impl TakeBack {
    pub(super) fn begin(
        shared: &Arc<Shared>,
        machine: &Machine,
        workspace: &Arc<Workspace>,
        number: u32,
        paths: Vec<String>,
    ) -> Self {
        let (engine, workspace) = (Engine { shared: Arc::clone(shared) }, Arc::clone(workspace));
        let run_id = machine.spec().run_id;
        Self(Box::pin(async move {
            match taken_back(&engine, workspace, run_id, number, paths).await {
                Ok((changes, remaining)) => {
                    let took_back = TookBack { number, remaining: remaining.clone(), error: None };
                    let note = Note::Undone { by: BY.to_owned(), changes, remaining };
                    TakenBack { input: Input::TookBack(Box::new(took_back)), note: Some(note) }
                }
                Err(error) => {
                    tracing::error!(%run_id, %error, "what nobody accepted could not be undone");
                    let took_back = TookBack { number, remaining: Vec::new(), error: Some(error) };
                    TakenBack { input: Input::TookBack(Box::new(took_back)), note: None }
                }
            }
        }))
    }

    /// What came of it, once it is there.
    pub(super) async fn next(taking_back: &mut Option<Self>) -> TakenBack {
        let done = match taking_back {
            Some(under_way) => under_way.0.as_mut().await,
            None => std::future::pending().await,
        };
        *taking_back = None;
        done
    }
}

async fn taken_back(
    engine: &Engine,
    workspace: Arc<Workspace>,
    run_id: RunId,
    number: u32,
    paths: Vec<String>,
) -> Result<(Vec<FileChange>, Vec<palyra_tools::RemainingFile>), StableErrorEnvelope> {
    let details = engine.run_details(run_id).await.map_err(|error| error.to_stable())?;
    let (artifacts, effects) = (Arc::clone(&engine.shared.artifacts), Arc::clone(&engine.shared.options.effects));
    // The same for every attempt: one that a crash cut short is finished, not done twice.
    let digest = Digest::of_parts(&[b"take_back", run_id.to_string().as_bytes(), &number.to_be_bytes()]);
    let effect_id = EffectId::new(format!("eff-{}", digest.to_hex().get(..32).unwrap_or_default()));
    let (changes, undone) = (details.changes, details.undone_files);
    let undoing = tokio::task::spawn_blocking(move || {
        let selection = Some(UndoSelection::parse(&paths, &workspace)?);
        let request = UndoRequest { changes: &changes, undone, selection, conflicts: UndoConflictMode::Skip };
        undo(&request, &workspace, artifacts.as_ref(), &effects, &effect_id)
    });
    let report = undoing
        .await
        .map_err(|error| StableErrorEnvelope::new("internal", ErrorCategory::Internal, error.to_string()))?
        .map_err(|error| error.to_stable())?;
    Ok((report.changes, report.remaining))
}
