//! Takes back what a run changed in the workspace.
//!
//! The changes of a run are folded per file: what it was before the first change, what it must be now. A file that is not as the run left it, or that somebody
//! else changed while a call of the run was at work, is a conflict; the request says whether conflicts stop everything, are left alone, or are overwritten with
//! what they held kept as an artifact. Undoing is an effect of its own, with its own id, and as crash-proof as the edits were.

use std::collections::{BTreeMap, BTreeSet};

use palyra_common::{ChangeAttribution, Digest, UndoConflictMode, UndoObstacle};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::artifacts::read_whole;
use crate::cancel::Cancel;
use crate::effects::{Content, Ground, NewContent, Plan, Receipt};
use crate::place::{Place, Standing};
use crate::undo_git::{Repositories, leaves_alone};
use crate::{Artifacts, EffectId, EffectStore, EntryFacts, EntryKind, FileChange, ToolError, Workspace, WorkspacePath};

/// Files above this are kept piece by piece: a program can make one of any length for nothing.
const MOST_IN_MEMORY: u64 = 1 << 20;

/// What to undo.
#[derive(Debug, Clone)]
pub struct UndoRequest<'a> {
    /// Everything that the run changed, in order.
    pub changes: &'a [FileChange],
    /// Files that an earlier undo has dealt with.
    pub undone: BTreeSet<String>,
    /// Which of the files; all of them if `None`.
    pub selection: Option<UndoSelection>,
    /// What happens to files that conflict.
    pub conflicts: UndoConflictMode,
}

/// Files and directories that somebody named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoSelection(Vec<WorkspacePath>);

/// A file that undo left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemainingFile {
    /// Path inside the workspace.
    pub path: String,
    /// Why.
    pub obstacle: UndoObstacle,
}

/// What an undo did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoReport {
    /// The inverse changes, one per file; undoing these would redo the run's.
    pub changes: Vec<FileChange>,
    /// Files that have their old content again.
    pub restored: Vec<String>,
    /// Files that are gone again.
    pub removed: Vec<String>,
    /// Files of the run that are still as they were found.
    pub remaining: Vec<RemainingFile>,
}

impl<'a> UndoRequest<'a> {
    /// Undoes all of these changes or, where one file conflicts, none.
    #[must_use]
    pub fn all_or_nothing(changes: &'a [FileChange]) -> Self {
        Self { changes, undone: BTreeSet::new(), selection: None, conflicts: UndoConflictMode::Refuse }
    }
}

impl UndoSelection {
    /// Reads paths as people write them.
    ///
    /// # Errors
    /// When one is no path inside the workspace.
    pub fn parse(paths: &[String], workspace: &Workspace) -> Result<Self, ToolError> {
        paths.iter().map(|path| workspace.path(path)).collect::<Result<_, _>>().map(Self)
    }

    /// The first path at and below which none of the changes are.
    #[must_use]
    pub fn without_changes(&self, changes: &[FileChange]) -> Option<String> {
        let covers = |path: &WorkspacePath| changes.iter().any(|change| covers(path, &change.path));
        self.0.iter().find(|path| !covers(path)).map(ToString::to_string)
    }

    fn contains(&self, path: &str) -> bool {
        self.0.iter().any(|selected| covers(selected, path))
    }
}

fn covers(selected: &WorkspacePath, path: &str) -> bool {
    selected.is_root() || selected.to_string() == path || is_below(path, &selected.to_string())
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// Undoes what is asked for; blocks. With the same effect id it happens once, and reports what was done then.
pub fn undo(
    request: &UndoRequest<'_>,
    workspace: &Workspace,
    artifacts: &dyn Artifacts,
    effects: &EffectStore,
    effect_id: &EffectId,
) -> Result<UndoReport, ToolError> {
    let cancel = Cancel::never();
    let ground = Ground { workspace, artifacts, cancel: &cancel };
    let text = serde_json::to_vec(request.changes).map_err(|error| ToolError::Internal(error.to_string()))?;
    // Not what was asked for: an attempt that a crash cut short is finished the way it was begun.
    let fingerprint = Digest::of_parts(&[b"undo", &text]);
    let receipt = effects.once(&ground, effect_id, fingerprint, || plan(request, &ground))?;
    let names = |fits: fn(&FileChange) -> bool| {
        receipt.changes.iter().filter(|change| fits(change)).map(|change| change.path.clone()).collect()
    };
    // An attempt of an earlier version, which left nothing, says nothing about it.
    let remaining = receipt.data.get("remaining").cloned().map_or(Ok(Vec::new()), serde_json::from_value);
    Ok(UndoReport {
        restored: names(|change| change.after.is_some()),
        removed: names(|change| change.after.is_none() && change.before.is_some()),
        remaining: remaining.map_err(|error| ToolError::Internal(error.to_string()))?,
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

/// The changes of a run, per file.
struct Changes<'a> {
    files: BTreeMap<&'a str, Folded<'a>>,
    /// Every directory that came or went with one of them.
    directories: BTreeSet<&'a String>,
}

/// What stands at a path now.
type Present = Option<Standing>;

/// What is to become of one file.
enum Verdict {
    /// It is as it was before the run.
    Unchanged,
    /// It is to be what it was before the run, from what it is now.
    Undo { now: Present, content: Option<Content> },
    /// It stays as it is.
    Remain { obstacle: UndoObstacle, cause: Option<ToolError> },
}

type Verdicts<'a> = BTreeMap<&'a str, Verdict>;

impl<'a> Changes<'a> {
    fn fold(changes: &'a [FileChange]) -> Self {
        let mut files: BTreeMap<&str, Folded<'_>> = BTreeMap::new();
        let mut made = BTreeSet::new();
        for change in changes {
            // A directory that the run made for a file, and removed again, was not there before.
            let was_made_here = change.entry.before == EntryKind::Directory && made.contains(&change.path);
            if was_made_here && change.after.is_none() && !files.contains_key(change.path.as_str()) {
                continue;
            }
            if change.before.is_none() {
                made.extend(&change.directories);
            }
            let file = files.entry(&change.path).or_insert(Folded {
                first: change,
                last: change,
                unbroken: true,
                directories: BTreeSet::new(),
                attribution: ChangeAttribution::Written,
            });
            let (last, next) = (&file.last, change);
            let follows = std::ptr::eq(*last, next) || ended(last) == began(next);
            // A program in the background reports at its end what the run's other calls changed meanwhile, from its own beginning on.
            let repeats = ended(last) == ended(next) && began(file.first) == began(next);
            file.unbroken &= follows || repeats;
            file.last = change;
            file.directories.extend(&change.directories);
            file.attribution = file.attribution.max(change.attribution);
        }
        Self { files, directories: changes.iter().flat_map(|change| &change.directories).collect() }
    }

    /// Whether what stands at (or above) an absent file is the run's own and goes with this undo: a directory that the run made,
    /// or a file that it made where a directory is needed again.
    fn make_way(&self, path: &str) -> bool {
        let made_here = self.directories.iter().any(|directory| directory.as_str() == path);
        let goes = |file: &Folded<'_>| file.first.before.is_none() || file.first.entry.before == EntryKind::Directory;
        made_here || above(path).any(|above| self.files.get(above).is_some_and(goes))
    }

    /// The directories that go with a file. Only the first file made in a directory names it, and it goes with the last one that is undone, whichever that is.
    fn directories_of(&self, path: &str, file: &Folded<'_>) -> Vec<String> {
        let around = self.directories.iter().filter(|directory| is_below(path, directory));
        around.chain(&file.directories).copied().collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }
}

impl Folded<'_> {
    /// Whether the file is what it was before the run.
    fn is_restored(&self, now: Present, workspace: &Workspace) -> Result<bool, ToolError> {
        let (first, Some(now)) = (self.first, now) else { return Ok(now.is_none() && self.first.before.is_none()) };
        let is_as_before =
            now.is(first.entry.before, first.before) && first.before_mode.is_none_or(|before| before == now.mode);
        match &first.entry.linked_to {
            Some(name) if is_as_before => {
                let other = standing_at(workspace, name)?;
                Ok(other.is_some_and(|other| other.inode == now.inode))
            }
            _ => Ok(is_as_before),
        }
    }

    /// Whether it is as the run left it.
    fn is_as_left(&self, now: Present) -> bool {
        match now {
            None => self.last.after.is_none(),
            Some(now) => now.is(self.last.entry.after, self.last.after),
        }
    }

    /// Why it is not the run's alone to take back.
    fn obstacle(&self, now: Present) -> Option<UndoObstacle> {
        if self.first.entry.rebuilt || self.last.entry.rebuilt {
            // Whoever builds again changes it, and nothing is lost.
            return None;
        }
        if self.attribution == ChangeAttribution::Contested || !self.unbroken {
            return Some(UndoObstacle::ChangedByOthers);
        }
        (!self.is_as_left(now)).then_some(UndoObstacle::ChangedSince)
    }

    /// Whether something at the path is what the run found or left there.
    fn knows(&self, kind: EntryKind) -> bool {
        let known = |change: &FileChange| {
            let left = change.after.map(|_| change.entry.after);
            left.into_iter()
                .chain(change.before.map(|_| change.entry.before))
                .any(|known| known == kind || (known == EntryKind::Tree && kind == EntryKind::Directory))
        };
        known(self.first) || known(self.last)
    }
}

impl Verdict {
    fn remain(obstacle: UndoObstacle) -> Self {
        Self::Remain { obstacle, cause: None }
    }

    fn of(
        request: &UndoRequest<'_>,
        path: &str,
        file: &Folded<'_>,
        changes: &Changes<'_>,
        git: &Repositories,
        ground: &Ground<'_>,
    ) -> Result<Self, ToolError> {
        if request.selection.as_ref().is_some_and(|selection| !selection.contains(path)) {
            return Ok(Self::remain(UndoObstacle::NotSelected));
        }
        let now = match standing_at(ground.workspace, path) {
            Ok(Some(now)) if now.kind != EntryKind::File && !file.knows(now.kind) => {
                let goes = now.kind == EntryKind::Directory && file.last.after.is_none() && changes.make_way(path);
                if !goes {
                    return Ok(Self::remain(UndoObstacle::CannotReplace));
                }
                None
            }
            Err(error) if error.is_not_a_file() && file.last.after.is_none() && changes.make_way(path) => None,
            Err(error) if error.is_somebody_elses() => return Ok(Self::remain(UndoObstacle::CannotReplace)),
            Err(error @ ToolError::PermissionDenied { .. }) => {
                return Ok(Self::Remain { obstacle: UndoObstacle::CannotReplace, cause: Some(error) });
            }
            other => other?,
        };
        if file.is_restored(now, ground.workspace)? && (now.is_some() || file.directories.is_empty()) {
            return Ok(Self::Unchanged);
        }
        if leaves_alone(path, file.first.before.is_none(), file.is_as_left(now), git) {
            return Ok(Self::Unchanged);
        }
        match file.obstacle(now) {
            Some(obstacle) if request.conflicts != UndoConflictMode::Overwrite => return Ok(Self::remain(obstacle)),
            _ => {}
        }
        let find = |before: &Digest| match file.first.entry.before {
            // Read to see that it is whole, and again when it is needed: all of them together may be more than fits into memory.
            EntryKind::File | EntryKind::Link => read_whole(ground.artifacts, before).map(|_| Content::Artifact),
            EntryKind::Directory | EntryKind::Tree | EntryKind::Other => Ok(Content::Bytes(Vec::new())),
        };
        match file.first.before.as_ref().map(find).transpose() {
            Ok(content) => Ok(Self::Undo { now, content }),
            Err(error @ ToolError::ArtifactNotFound { .. }) => {
                Ok(Self::Remain { obstacle: UndoObstacle::ContentMissing, cause: Some(error) })
            }
            Err(error) => Err(error),
        }
    }
}

fn plan(request: &UndoRequest<'_>, ground: &Ground<'_>) -> Result<Plan, ToolError> {
    let changes = Changes::fold(request.changes);
    let mut verdicts = Verdicts::new();
    let left = changes.files.iter().map(|(path, file)| (*path, file.last));
    let git = Repositories::look(ground.workspace, left)?;
    for (path, file) in changes.files.iter().filter(|(path, _)| !request.undone.contains(**path)) {
        verdicts.insert(path, Verdict::of(request, path, file, &changes, &git, ground)?);
    }
    keep_blocked_files(&mut verdicts);
    let remaining = remaining(&verdicts);
    let possible = verdicts.values().any(|verdict| matches!(verdict, Verdict::Undo { .. }));
    let refused = request.conflicts == UndoConflictMode::Refuse || !possible;
    if refused && remaining.iter().any(|file| file.obstacle.is_conflict()) {
        return Err(refusal(verdicts));
    }
    let (mut inverse, mut contents) = (Vec::new(), Vec::new());
    for (path, verdict) in verdicts {
        let (Verdict::Undo { now, content }, Some(file)) = (verdict, changes.files.get(path)) else { continue };
        if let Some(now) = now {
            // What is replaced is kept as well: the undo itself can be taken back.
            keep_present(ground, path, now.kind)?;
        }
        inverse.push(FileChange {
            path: path.to_owned(),
            before: now.map(|now| now.digest),
            after: file.first.before,
            before_mode: now.map(|now| now.mode),
            directories: changes.directories_of(path, file),
            attribution: file.attribution,
            entry: EntryFacts {
                before: match (now.map(|now| now.kind), file.last.entry.after) {
                    (Some(EntryKind::Directory), EntryKind::Tree) => EntryKind::Tree,
                    (Some(kind), _) => kind,
                    (None, _) => EntryKind::File,
                },
                after: file.first.entry.before,
                linked_to: file.first.entry.linked_to.clone(),
                rebuilt: file.first.entry.rebuilt,
            },
        });
        contents.push(NewContent { content, mode: file.first.before_mode });
    }
    let content = format!("undid the changes of {} files", inverse.len());
    Ok(Plan { receipt: Receipt { content, data: json!({ "remaining": remaining }), changes: inverse }, contents })
}

/// Lets a file stay that cannot come back because of another one that stays: in its place a directory is needed, or in its directory's place a file.
fn keep_blocked_files(verdicts: &mut Verdicts<'_>) {
    loop {
        let staying: BTreeSet<&str> = verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Remain { .. }))
            .map(|(path, _)| *path)
            .collect();
        if staying.is_empty() {
            return;
        }
        let blocks = |path: &str| {
            let within = format!("{path}/");
            let below = staying.range(within.as_str()..).next().is_some_and(|found| found.starts_with(&within));
            below || above(path).any(|above| staying.contains(above))
        };
        let comes_back = |verdict: &Verdict| matches!(verdict, Verdict::Undo { content: Some(_), .. });
        let blocked: Vec<_> = verdicts
            .iter()
            .filter(|(path, verdict)| comes_back(verdict) && blocks(path))
            .map(|(path, _)| *path)
            .collect();
        if blocked.is_empty() {
            return;
        }
        verdicts.extend(blocked.into_iter().map(|path| (path, Verdict::remain(UndoObstacle::CannotReplace))));
    }
}

fn remaining(verdicts: &Verdicts<'_>) -> Vec<RemainingFile> {
    let file = |(path, verdict): (&&str, &Verdict)| match verdict {
        Verdict::Remain { obstacle, .. } => Some(RemainingFile { path: (*path).to_owned(), obstacle: *obstacle }),
        Verdict::Unchanged | Verdict::Undo { .. } => None,
    };
    verdicts.iter().filter_map(file).collect()
}

/// Why nothing is undone.
fn refusal(verdicts: Verdicts<'_>) -> ToolError {
    let (mut since, mut during, mut first_cause) = (Vec::new(), Vec::new(), None);
    let others = verdicts.values().filter(|verdict| matches!(verdict, Verdict::Undo { .. })).count();
    for (path, verdict) in verdicts {
        let Verdict::Remain { obstacle, cause } = verdict else { continue };
        match (obstacle, cause) {
            (UndoObstacle::NotSelected, _) => {}
            (_, Some(cause)) => first_cause = first_cause.or(Some(cause)),
            (UndoObstacle::ChangedByOthers, None) => during.push(path.to_owned()),
            (UndoObstacle::ChangedSince | UndoObstacle::CannotReplace | UndoObstacle::ContentMissing, None) => {
                since.push(path.to_owned());
            }
        }
    }
    match first_cause {
        Some(cause) if since.is_empty() && during.is_empty() => cause,
        _ => ToolError::UndoConflict { since, during, others },
    }
}

/// The paths of the directories above a path.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(end, _)| path.get(..end))
}

/// What a change found, and what it left.
fn began(change: &FileChange) -> Option<(Digest, EntryKind)> {
    change.before.map(|digest| (digest, change.entry.before))
}

fn ended(change: &FileChange) -> Option<(Digest, EntryKind)> {
    change.after.map(|digest| (digest, change.entry.after))
}

/// What is at the path now.
fn standing_at(workspace: &Workspace, path: &str) -> Result<Present, ToolError> {
    let path = workspace.path(path)?;
    match Place::find(workspace, &path)? {
        None => Ok(None),
        Some(place) => place.standing(),
    }
}

fn keep_present(ground: &Ground<'_>, path: &str, kind: EntryKind) -> Result<(), ToolError> {
    let path = ground.workspace.path(path)?;
    match kind {
        EntryKind::File => {}
        EntryKind::Link => {
            let place = Place::find(ground.workspace, &path)?;
            let target = place.map(|place| place.target()).transpose()?;
            return ground.artifacts.put(&target.unwrap_or_default()).map(|_| ());
        }
        EntryKind::Directory | EntryKind::Tree | EntryKind::Other => {
            return ground.artifacts.put(b"").map(|_| ());
        }
    }
    match ground.workspace.open_file(&path) {
        Ok(mut file) if file.size() > MOST_IN_MEMORY => ground.artifacts.put_reader(&mut file.file).map(|_| ()),
        Ok(file) => ground.artifacts.put(&file.read_whole(u64::MAX)?).map(|_| ()),
        Err(ToolError::PathNotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
