//! Takes back what a run changed in the workspace.
//!
//! The changes of a run are folded per file: what it was before the first change, what it must be now. If any file is not as the
//! run left it, or somebody else changed it while a call of the run was at work, nothing is undone and all such files are named. Undoing is an effect of its own, with its own id, and as
//! crash-proof as the edits were.

use std::collections::{BTreeMap, BTreeSet};

use palyra_common::{ChangeAttribution, Digest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::artifacts::read_whole;
use crate::cancel::Cancel;
use crate::effects::{Ground, NewContent, Plan, Receipt};
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
    let names = |fits: fn(&FileChange) -> bool| {
        receipt.changes.iter().filter(|change| fits(change)).map(|change| change.path.clone()).collect()
    };
    Ok(UndoReport {
        restored: names(|change| change.after.is_some()),
        removed: names(|change| change.after.is_none() && change.before.is_some()),
        changes: receipt.changes,
    })
}

/// One file over all changes of the run.
struct Folded<'a> {
    first: &'a FileChange,
    last: &'a FileChange,
    /// Whether each change began where the one before it ended.
    unbroken: bool,
    directories: BTreeSet<&'a String>,
    /// Of all changes the least certain.
    attribution: ChangeAttribution,
}

fn fold(changes: &[FileChange]) -> BTreeMap<&str, Folded<'_>> {
    let mut files: BTreeMap<&str, Folded<'_>> = BTreeMap::new();
    for change in changes {
        let file = files.entry(&change.path).or_insert(Folded {
            first: change,
            last: change,
            unbroken: true,
            directories: BTreeSet::new(),
            attribution: ChangeAttribution::Written,
        });
        let follows = std::ptr::eq(file.last, change) || file.last.after == change.before;
        // A program in the background reports at its end what the run's other calls changed meanwhile, from its own beginning on.
        let repeats = file.last.after == change.after && file.first.before == change.before;
        file.unbroken &= follows || repeats;
        file.last = change;
        file.directories.extend(&change.directories);
        file.attribution = file.attribution.max(change.attribution);
    }
    files
}

fn plan(changes: &[FileChange], ground: &Ground<'_>) -> Result<Plan, ToolError> {
    let files = fold(changes);
    let (mut conflicts, mut contested) = (Vec::new(), Vec::new());
    let mut inverse = Vec::new();
    let mut contents = Vec::new();
    for (path, file) in &files {
        if file.attribution == ChangeAttribution::Contested {
            contested.push((*path).to_owned());
            continue;
        }
        let now = match digest_at(ground.workspace, path) {
            Err(error) if error.is_not_a_file() && file.last.after.is_none() && makes_way(path, &files) => None,
            Err(error) if error.is_somebody_elses() => {
                conflicts.push((*path).to_owned());
                continue;
            }
            other => other?,
        };
        if !file.unbroken || now.map(|(digest, _)| digest) != file.last.after {
            conflicts.push((*path).to_owned());
            continue;
        }
        let mode = now.map(|(_, mode)| mode);
        let same = file.first.before == file.last.after && file.first.before_mode == mode;
        if same && file.directories.is_empty() {
            continue;
        }
        let bytes = file.first.before.as_ref().map(|before| read_whole(ground.artifacts, before)).transpose()?;
        if now.is_some() {
            // What the run wrote is kept as well: the undo itself can be taken back.
            keep_present(ground, path)?;
        }
        inverse.push(FileChange {
            path: (*path).to_owned(),
            before: file.last.after,
            after: file.first.before,
            before_mode: mode,
            directories: file.directories.iter().map(|directory| (*directory).clone()).collect(),
            attribution: file.attribution,
        });
        contents.push(NewContent { bytes, mode: file.first.before_mode });
    }
    if !conflicts.is_empty() || !contested.is_empty() {
        return Err(ToolError::UndoConflict { since: conflicts, during: contested });
    }
    let content = format!("undid the changes of {} files", inverse.len());
    Ok(Plan { receipt: Receipt { content, data: json!({}), changes: inverse }, contents })
}

/// Whether what stands at (or above) an absent file is the run's own and goes with this undo: a directory that the run made,
/// or a file that it made where a directory is needed again.
fn makes_way(path: &str, files: &BTreeMap<&str, Folded<'_>>) -> bool {
    let made_here = files.values().any(|file| file.directories.iter().any(|directory| directory.as_str() == path));
    let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
    made_here || above.into_iter().any(|above| files.get(above).is_some_and(|file| file.first.before.is_none()))
}

/// What is at the path now.
fn digest_at(workspace: &Workspace, path: &str) -> Result<Option<(Digest, u32)>, ToolError> {
    let path = workspace.path(path)?;
    match Place::find(workspace, &path)? {
        None => Ok(None),
        Some(place) => place.digest_and_mode(),
    }
}

fn keep_present(ground: &Ground<'_>, path: &str) -> Result<(), ToolError> {
    let path = ground.workspace.path(path)?;
    match ground.workspace.open_file(&path) {
        Ok(file) => ground.artifacts.put(&file.read_whole(u64::MAX)?).map(|_| ()),
        Err(ToolError::PathNotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
