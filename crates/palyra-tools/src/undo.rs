//! Takes back what a run changed in the workspace.
//!
//! The changes of a run are folded per file: what it was before the first change, what it must be now. If any file is not as the
//! run left it, nothing is undone and all such files are named. Undoing is an effect of its own, with its own id, and as
//! crash-proof as the edits were.

use std::collections::BTreeMap;

use palyra_common::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::artifacts::read_whole;
use crate::cancel::Cancel;
use crate::effects::{Ground, NewContent, Plan, Receipt, remove_directories};
use crate::place::Place;
use crate::{Artifacts, EffectId, EffectStore, FileChange, ToolError, Workspace};

/// What an undo did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoReport {
    /// The inverse changes, one per file; undoing these would redo the run's.
    pub changes: Vec<FileChange>,
    /// Files that have their old content again.
    pub restored: Vec<String>,
    /// Files that are gone again.
    pub removed: Vec<String>,
}

/// Undoes `changes` (in the order they were made); blocks. With the same effect id it happens once.
pub fn undo(
    changes: &[FileChange],
    workspace: &Workspace,
    artifacts: &dyn Artifacts,
    effects: &EffectStore,
    effect_id: &EffectId,
) -> Result<UndoReport, ToolError> {
    let cancel = Cancel::never();
    let ground = Ground { workspace, artifacts, cancel: &cancel };
    let text = serde_json::to_vec(changes).map_err(|error| ToolError::Internal(error.to_string()))?;
    let fingerprint = Digest::of_parts(&[b"undo", &text]);
    let receipt = effects.once(&ground, effect_id, fingerprint, || plan(changes, &ground))?;
    // Innermost last: a directory that the run made is removed when nothing else is in it.
    for change in changes.iter().rev() {
        remove_directories(workspace, &change.created_directories);
    }
    let names = |gone: bool| {
        let fits = |change: &&FileChange| change.after.is_none() == gone;
        receipt.changes.iter().filter(fits).map(|change| change.path.clone()).collect()
    };
    Ok(UndoReport { restored: names(false), removed: names(true), changes: receipt.changes })
}

/// One file over all changes of the run.
struct Folded<'a> {
    first: &'a FileChange,
    last: &'a FileChange,
    /// Whether each change began where the one before it ended.
    unbroken: bool,
}

fn plan(changes: &[FileChange], ground: &Ground<'_>) -> Result<Plan, ToolError> {
    let mut files: BTreeMap<&str, Folded<'_>> = BTreeMap::new();
    for change in changes {
        files
            .entry(&change.path)
            .and_modify(|file| {
                file.unbroken &= file.last.after == change.before;
                file.last = change;
            })
            .or_insert(Folded { first: change, last: change, unbroken: true });
    }
    let mut conflicts = Vec::new();
    let mut inverse = Vec::new();
    let mut contents = Vec::new();
    for (path, file) in files {
        let now = match digest_at(ground.workspace, path) {
            Err(error) if not_a_file(&error) => {
                conflicts.push(path.to_owned());
                continue;
            }
            other => other?,
        };
        if !file.unbroken || now.map(|(digest, _)| digest) != file.last.after {
            conflicts.push(path.to_owned());
            continue;
        }
        if file.first.before == file.last.after && file.first.before_mode == now.map(|(_, mode)| mode) {
            continue;
        }
        let bytes = file.first.before.as_ref().map(|before| read_whole(ground.artifacts, before)).transpose()?;
        // What the run wrote is kept as well: the undo itself can be taken back.
        keep_present(ground, path)?;
        inverse.push(FileChange {
            path: path.to_owned(),
            before: file.last.after,
            after: file.first.before,
            before_mode: now.map(|(_, mode)| mode),
            created_directories: Vec::new(),
        });
        contents.push(NewContent { bytes, mode: file.first.before_mode });
    }
    if !conflicts.is_empty() {
        return Err(ToolError::UndoConflict { paths: conflicts });
    }
    let content = format!("undid the changes of {} files", inverse.len());
    Ok(Plan { receipt: Receipt { content, data: json!({}), changes: inverse }, contents })
}

/// What is at the path now; an error of kind [`not_a_file`] if something else is.
fn digest_at(workspace: &Workspace, path: &str) -> Result<Option<(Digest, u32)>, ToolError> {
    let path = workspace.path(path)?;
    match Place::find(workspace, &path)? {
        None => Ok(None),
        Some(place) => place.digest_and_mode(),
    }
}

/// Whether an error says that a directory, a link or a device now stands where the file or one of its directories was.
fn not_a_file(error: &ToolError) -> bool {
    matches!(error.code(), "path_is_directory" | "path_not_directory" | "special_file" | "invalid_path")
}

fn keep_present(ground: &Ground<'_>, path: &str) -> Result<(), ToolError> {
    let path = ground.workspace.path(path)?;
    match ground.workspace.open_file(&path) {
        Ok(file) => ground.artifacts.put(&file.read_whole(u64::MAX)?).map(|_| ()),
        Err(ToolError::PathNotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
