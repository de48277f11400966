//! The change set of a run, from outside of the machine: which changes take effect later, and how they are taken back.

use std::pin::Pin;
use std::sync::Arc;

use palyra_common::{Digest, ErrorCategory, RunId, StableErrorEnvelope, ToStableError as _, UndoConflictMode};
use palyra_tools::{
    Artifacts, EffectId, EntryKind, FileChange, LaterChange, Standing, UndoRequest, UndoSelection, Workspace,
    later_change, later_executed, undo,
};

use super::{Engine, Shared};
use crate::machine::{CallResult, Input, Machine, TookBack};
use crate::tape::Note;

/// Longest file whose content is looked at.
const LOOKED_AT: usize = 1 << 20;
/// Who took it back, on the tape.
const BY: &str = "palyra";

/// Puts into the result of a finished call which of its changes take effect later. What cannot be looked at counts.
pub(super) async fn note_later(shared: &Arc<Shared>, workspace: &Arc<Workspace>, input: &mut Input) {
    let Input::ToolFinished { result, .. } = input else { return };
    if !result.changes.iter().any(may_matter) {
        return;
    }
    let (artifacts, workspace, changes) =
        (Arc::clone(&shared.artifacts), Arc::clone(workspace), result.changes.clone());
    let looked = tokio::task::spawn_blocking(move || {
        changes
            .iter()
            .filter(|change| may_matter(change))
            .filter_map(|change| examined(change, artifacts.as_ref(), &workspace))
            .collect()
    });
    result.later = looked.await.unwrap_or_else(|_| unexamined(result));
}

fn may_matter(change: &FileChange) -> bool {
    // Among build products and packages the files of builds are as many as there are packages.
    later_executed(std::path::Path::new(&change.path))
        .is_some_and(|by| !change.entry.rebuilt || by.standing() == Standing::Always)
}

/// All of them, as if nothing could be read.
fn unexamined(result: &CallResult) -> Vec<LaterChange> {
    let all = result.changes.iter().filter(|change| may_matter(change));
    all.filter_map(|change| later_change(&change.path, change.before.map(|_| None), change.after.map(|_| None)))
        .collect()
}

fn examined(change: &FileChange, artifacts: &dyn Artifacts, workspace: &Workspace) -> Option<LaterChange> {
    let before = change.before.map(|digest| match change.entry.before {
        EntryKind::File => whole(artifacts, &digest),
        EntryKind::Link | EntryKind::Directory | EntryKind::Tree | EntryKind::Other => None,
    });
    let after = change.after.map(|digest| match change.entry.after {
        EntryKind::File => present(workspace, &change.path, &digest),
        EntryKind::Link | EntryKind::Directory | EntryKind::Tree | EntryKind::Other => None,
    });
    if change.after.is_some() && matches!(change.entry.after, EntryKind::Directory | EntryKind::Tree) {
        // What is in it is told by itself.
        return None;
    }
    later_change(&change.path, slice(&before), slice(&after))
}

#[expect(clippy::option_option, reason = "no file, or one whose content cannot be looked at")]
fn slice(content: &Option<Option<Vec<u8>>>) -> Option<Option<&[u8]>> {
    content.as_ref().map(Option::as_deref)
}

/// An artifact, if it is there and not too long.
fn whole(artifacts: &dyn Artifacts, digest: &Digest) -> Option<Vec<u8>> {
    let length = usize::try_from(artifacts.len(digest).ok()??).ok()?;
    let bytes = (length <= LOOKED_AT).then(|| artifacts.get_range(digest, 0, length).ok())??;
    (Digest::of(&bytes) == *digest).then_some(bytes)
}

/// What the file holds now, if that is what the call left.
fn present(workspace: &Workspace, path: &str, digest: &Digest) -> Option<Vec<u8>> {
    let read = workspace.read_bytes(path, LOOKED_AT).ok()?;
    (read.whole && Digest::of(&read.bytes) == *digest).then_some(read.bytes)
}

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
                    tracing::error!(%run_id, %error, "what nobody accepted could not be taken back");
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
