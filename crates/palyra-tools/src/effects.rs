//! Edits of several files that happen once or not at all, across crashes.
//!
//! An effect is planned completely in memory, then its *plan* (every file's before and after digest, the new contents, what will
//! be reported) is written to the store and made durable: the point of no return. Only then are files replaced, one rename each.
//! The same effect id always ends at the same place:
//!
//! | found in the store | meaning | what a call with that id does |
//! |---|---|---|
//! | nothing | it never began | plans and begins |
//! | `.plan` | died half-way | carries on: a file at *before* is replaced, one at *after* is done |
//! | `.back` | being taken back | finishes taking back, then begins anew |
//! | `.done` | finished | reports what was reported then |
//!
//! A file that is at neither of its digests belongs to somebody else now: the effect is taken back as a whole and
//! `effect_conflict` names the file. INVARIANT: the phase is the file's extension, so it changes by one atomic rename.
//!
//! How one file is replaced is the business of `place.rs`; the layout of a plan, of `plan_file.rs`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palyra_common::{Digest, Label};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cancel::Cancel;
use crate::effect_steps::{Step, Wanted, open_up, put, take_away};
use crate::place::Place;
use crate::plan_file::{PlanFile, PlannedEdit};
use crate::{
    Artifacts, EffectId, EntryKind, FileChange, ToolError, ToolOutput, Workspace, WorkspaceActivity, artifacts,
};

const PLAN: &str = "plan";
const BACK: &str = "back";
const DONE: &str = "done";

/// Where effects are staged: a private directory outside every workspace.
#[derive(Debug)]
pub struct EffectStore {
    root: PathBuf,
    /// Who is told about every write, so that it is not taken for that of a program.
    activity: Arc<WorkspaceActivity>,
    fault: Fault,
}

/// What an effect reports when it is done; stored with it, so that it reports the same again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) content: String,
    pub(crate) data: Value,
    pub(crate) changes: Vec<FileChange>,
}

impl Receipt {
    /// The receipt as a tool's output.
    pub(crate) fn into_output(self, label: Label) -> ToolOutput {
        ToolOutput { changes: self.changes, ..ToolOutput::text(self.content, label).with_data(self.data) }
    }
}

/// A planned effect: what to report, and the new content and mode of each change (in the same order).
pub(crate) struct Plan {
    pub(crate) receipt: Receipt,
    pub(crate) contents: Vec<NewContent>,
}

/// What shall be there; what kind of thing it is, says the change.
pub(crate) struct NewContent {
    /// What a file shall hold, or where a link shall lead; `None` removes what is there.
    pub(crate) content: Option<Content>,
    /// Permission bits; `None` leaves them to the system's default for new files.
    pub(crate) mode: Option<u32>,
}

/// Where a new content is until it is needed.
pub(crate) enum Content {
    /// Here, and in the plan.
    Bytes(Vec<u8>),
    /// Kept as the artifact that the change names, so that contents of many files are never in memory together.
    Artifact,
}

/// What an effect works on.
pub(crate) struct Ground<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) artifacts: &'a dyn Artifacts,
    pub(crate) cancel: &'a Cancel,
}

impl EffectStore {
    /// Opens the store, making its directory (mode 0700) if need be; blocks.
    pub fn open(root: impl AsRef<Path>) -> Result<Self, ToolError> {
        let root = root.as_ref().to_path_buf();
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&root);
        made.map_err(|error| failed(&root, error))?;
        // A plan that was not written to its end never took effect.
        for entry in fs::read_dir(&root).map_err(|error| failed(&root, error))? {
            let path = entry.map_err(|error| failed(&root, error))?.path();
            if path.extension() == Some(OsStr::new("tmp")) {
                remove_if_there(&path)?;
            }
        }
        Ok(Self { root, activity: Arc::default(), fault: Fault::default() })
    }

    /// Tells `activity` about every write.
    #[must_use]
    pub fn reporting_to(self, activity: Arc<WorkspaceActivity>) -> Self {
        Self { activity, ..self }
    }

    /// Drops what is kept about a finished effect, once its outcome is on the journal. An unfinished one is kept.
    pub fn forget(&self, effect_id: &EffectId) -> Result<(), ToolError> {
        remove_if_there(&self.file(effect_id, DONE))
    }

    /// Effects that began and have not ended; after a start, each is due to be called again.
    pub fn unfinished(&self) -> Result<Vec<EffectId>, ToolError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(|error| failed(&self.root, error))? {
            let path = entry.map_err(|error| failed(&self.root, error))?.path();
            if [PLAN, BACK].iter().any(|phase| path.extension() == Some(OsStr::new(phase))) {
                found.push(PlanFile::read(&path)?.effect_id);
            }
        }
        found.sort();
        Ok(found)
    }

    /// The artifacts that effects name whose outcome may not be on the journal yet. They have to be kept until it is.
    ///
    /// # Errors
    /// If an effect cannot be read: then nobody knows.
    pub fn named_artifacts(&self) -> Result<BTreeSet<Digest>, ToolError> {
        let mut named = BTreeSet::new();
        for entry in fs::read_dir(&self.root).map_err(|error| failed(&self.root, error))? {
            let path = entry.map_err(|error| failed(&self.root, error))?.path();
            if ![PLAN, BACK, DONE].iter().any(|phase| path.extension() == Some(OsStr::new(phase))) {
                continue;
            }
            let plan = match PlanFile::read(&path) {
                Ok(plan) => plan,
                // Its phase changed, or its outcome was recorded, while we looked: it is read under its new name or named by the journal.
                Err(_) if !path.exists() => return self.named_artifacts(),
                Err(error) => return Err(error),
            };
            named.extend(plan.receipt.changes.iter().flat_map(|change| [change.before, change.after]).flatten());
        }
        Ok(named)
    }

    /// Carries out an effect exactly once; `make_plan` is asked only if it has not begun yet.
    pub(crate) fn once(
        &self,
        ground: &Ground<'_>,
        effect_id: &EffectId,
        fingerprint: Digest,
        make_plan: impl FnOnce() -> Result<Plan, ToolError>,
    ) -> Result<Receipt, ToolError> {
        let same = |plan: PlanFile| {
            if plan.fingerprint == fingerprint && plan.effect_id == *effect_id {
                return Ok(plan);
            }
            Err(ToolError::EffectMismatch { effect_id: effect_id.to_string() })
        };
        if let Some(done) = self.load(effect_id, DONE)? {
            return Ok(same(done)?.receipt);
        }
        if let Some(begun) = self.load(effect_id, PLAN)? {
            return self.carry_out(ground, same(begun)?);
        }
        if let Some(half_back) = self.load(effect_id, BACK)? {
            self.take_back(ground, &half_back)?;
        }
        let plan = make_plan()?;
        if plan.contents.is_empty() {
            return Ok(plan.receipt);
        }
        ground.cancel.check()?;
        self.fault.step();
        let plan = PlanFile::new(effect_id.clone(), fingerprint, plan);
        plan.write(&self.file(effect_id, PLAN))?;
        self.sync()?;
        self.fault.step();
        self.carry_out(ground, plan)
    }

    fn carry_out(&self, ground: &Ground<'_>, plan: PlanFile) -> Result<Receipt, ToolError> {
        self.activity.writing(ground.workspace.root(), &plan.receipt.changes);
        if let Err(error) = self.replace_all(ground, &plan) {
            self.turn(&plan.effect_id, PLAN, BACK)?;
            self.take_back(ground, &plan)?;
            return Err(error);
        }
        self.turn(&plan.effect_id, PLAN, DONE)?;
        self.fault.step();
        Ok(plan.receipt)
    }

    /// Removals first, then the directories that go with them, then everything else: so a file can take the place of a
    /// directory, and the other way round. What cannot be taken back comes last.
    fn replace_all(&self, ground: &Ground<'_>, plan: &PlanFile) -> Result<(), ToolError> {
        let mut edits: Vec<_> = plan.edits().collect::<Result<Vec<_>, _>>()?.into_iter().enumerate().collect();
        // A directory sorts before what is in it.
        edits.sort_by(|(_, one), (_, other)| one.change.path.cmp(&other.change.path));
        for (_, edit) in edits.iter().filter(|(_, edit)| Step::of(edit) == Step::Directory) {
            open_up(ground.workspace, edit.change)?;
        }
        for step in Step::IN_ORDER {
            let these = || edits.iter().filter(|(_, edit)| Step::of(edit) == step);
            match step {
                Step::DirectoryGoes => {
                    let gone = edits.iter().filter(|(_, edit)| edit.content.is_none());
                    let with = gone.flat_map(|(_, edit)| &edit.change.directories);
                    remove_directories(ground.workspace, with.chain(these().map(|(_, edit)| &edit.change.path)));
                }
                Step::Goes | Step::Directory | Step::Comes | Step::Name | Step::TreeGoes => {
                    for (number, edit) in these() {
                        self.replace(ground, &plan.effect_id, *number, edit)?;
                    }
                }
            }
        }
        // Last: a directory may not let anybody write to it.
        for (_, edit) in edits.iter().rev().filter(|(_, edit)| Step::of(edit) == Step::Directory) {
            let Some(mode) = edit.mode else { continue };
            let path = ground.workspace.path(&edit.change.path)?;
            if let Some(place) = Place::find(ground.workspace, &path)? {
                place.set_directory_mode(mode)?;
            }
        }
        Ok(())
    }

    fn replace(
        &self,
        ground: &Ground<'_>,
        effect_id: &EffectId,
        number: usize,
        edit: &PlannedEdit<'_>,
    ) -> Result<(), ToolError> {
        let change = edit.change;
        let conflict = || ToolError::EffectConflict { path: change.path.clone() };
        // What cannot be a file any more was changed by somebody, too.
        let or_conflict = |error: ToolError| if error.is_somebody_elses() { conflict() } else { error };
        let path = ground.workspace.path(&change.path)?;
        let place = match edit.content {
            Some(_) if !path.is_root() => Some(Place::find_or_make(ground.workspace, &path).map_err(or_conflict)?),
            Some(_) | None => Place::find(ground.workspace, &path).map_err(or_conflict)?,
        };
        // No directory, no file: a removal is done.
        let Some(place) = place else { return Ok(()) };
        let now = place.standing().map_err(or_conflict)?;
        let is = |kind, digest: Option<Digest>| match &now {
            None => digest.is_none(),
            Some(now) => now.is(kind, digest),
        };
        let (is_before, is_after) = (is(change.entry.before, change.before), is(change.entry.after, change.after));
        let stays = change.before == change.after && change.entry.before == change.entry.after;
        if is_after && !stays && edit.linked_to().is_none() {
            return Ok(());
        }
        if !is_before && !is_after {
            return Err(conflict());
        }
        let temporary = temporary_name(effect_id, number);
        match edit.content {
            Some(content) => {
                let bytes = content.load(ground.artifacts)?;
                let (kind, mode) = (change.entry.after, edit.mode);
                let wanted = Wanted { kind, bytes: &bytes, mode, name_of: edit.linked_to() };
                put(ground.workspace, &place, now, wanted, &temporary)?;
            }
            None => take_away(&place, now, change.entry.before)?,
        }
        self.fault.step();
        Ok(())
    }

    /// Puts every file that is at its *after* back to its *before*. A file that is at neither is left alone; one that cannot be
    /// put back now does not keep the others from it, and the plan stays for another attempt.
    fn take_back(&self, ground: &Ground<'_>, plan: &PlanFile) -> Result<(), ToolError> {
        let changes = || plan.receipt.changes.iter().enumerate().rev();
        let mut outcome = Ok(());
        for (number, change) in changes().filter(|(_, change)| change.before.is_none()) {
            outcome = outcome.and(self.put_back(ground, &plan.effect_id, number, change));
        }
        let made = changes().filter(|(_, change)| change.before.is_none());
        remove_directories(ground.workspace, made.flat_map(|(_, change)| &change.directories));
        for (number, change) in changes().filter(|(_, change)| change.before.is_some()) {
            outcome = outcome.and(self.put_back(ground, &plan.effect_id, number, change));
        }
        outcome?;
        remove_if_there(&self.file(&plan.effect_id, BACK))?;
        self.sync()
    }

    fn put_back(
        &self,
        ground: &Ground<'_>,
        effect_id: &EffectId,
        number: usize,
        change: &FileChange,
    ) -> Result<(), ToolError> {
        let path = ground.workspace.path(&change.path)?;
        let temporary = temporary_name(effect_id, number);
        let attempt = || -> Result<(), ToolError> {
            // Only a file that was removed may need its directory made again.
            let place = match (&change.before, &change.after) {
                (Some(_), None) => Some(Place::find_or_make(ground.workspace, &path)?),
                _ => Place::find(ground.workspace, &path)?,
            };
            let Some(place) = place else { return Ok(()) };
            place.discard(&temporary)?;
            let now = place.standing()?;
            let is_after = match &now {
                None => change.after.is_none(),
                Some(now) => now.is(change.entry.after, change.after),
            };
            if !is_after {
                return Ok(());
            }
            match &change.before {
                Some(_) if change.entry.before == EntryKind::Tree => Ok(()),
                Some(before) => {
                    let (kind, mode) = (change.entry.before, change.before_mode);
                    let bytes = match kind {
                        EntryKind::File | EntryKind::Link => artifacts::read_whole(ground.artifacts, before)?,
                        EntryKind::Directory | EntryKind::Tree | EntryKind::Other => Vec::new(),
                    };
                    let wanted = Wanted { kind, bytes: &bytes, mode, name_of: None };
                    put(ground.workspace, &place, now, wanted, &temporary)?;
                    match (kind, mode) {
                        (EntryKind::Directory, Some(mode)) => place.set_directory_mode(mode),
                        _ => Ok(()),
                    }
                }
                None if change.after.is_some() => take_away(&place, now, change.entry.after),
                None => Ok(()),
            }
        };
        let attempted = match attempt() {
            Err(error) if error.is_somebody_elses() || matches!(error, ToolError::EffectConflict { .. }) => Ok(()),
            other => other,
        };
        self.fault.step();
        attempted
    }

    fn load(&self, effect_id: &EffectId, phase: &str) -> Result<Option<PlanFile>, ToolError> {
        let path = self.file(effect_id, phase);
        match path.try_exists() {
            Ok(true) => PlanFile::read(&path).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(failed(&path, error)),
        }
    }

    fn turn(&self, effect_id: &EffectId, from: &str, to: &str) -> Result<(), ToolError> {
        let path = self.file(effect_id, from);
        fs::rename(&path, self.file(effect_id, to)).map_err(|error| failed(&path, error))?;
        self.sync()
    }

    fn file(&self, effect_id: &EffectId, phase: &str) -> PathBuf {
        self.root.join(format!("{}.{phase}", Digest::of(effect_id.as_str().as_bytes()).to_hex()))
    }

    fn sync(&self) -> Result<(), ToolError> {
        let synced = fs::File::open(&self.root).and_then(|root| root.sync_all());
        synced.map_err(|error| failed(&self.root, error))
    }
}

/// Removes directories, innermost first, as far as they are empty. One that somebody uses stays.
fn remove_directories<'a>(workspace: &Workspace, directories: impl Iterator<Item = &'a String>) {
    // A directory sorts before what is in it.
    for directory in directories.collect::<BTreeSet<_>>().into_iter().rev() {
        if let Ok(path) = workspace.path(directory) {
            // Not empty, or gone: either way there is nothing to do.
            let _ = workspace.dir().remove_dir(path.as_path());
        }
    }
}

/// Hidden, and the same after a crash, so that a left-over is found again.
fn temporary_name(effect_id: &EffectId, number: usize) -> String {
    let digest = Digest::of(effect_id.as_str().as_bytes()).to_hex();
    format!(".palyra-{}-{number}.tmp", digest.get(..16).unwrap_or_default())
}

fn remove_if_there(path: &Path) -> Result<(), ToolError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(path, error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path, error: std::io::Error) -> ToolError {
    ToolError::io(&path.display().to_string(), error)
}

/// Where tests pull the plug: nothing at all outside of them.
#[derive(Debug, Default)]
struct Fault {
    #[cfg(test)]
    steps_left: std::sync::Mutex<Option<usize>>,
}

impl Fault {
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "the test build looks at itself")]
    fn step(&self) {}

    #[cfg(test)]
    fn step(&self) {
        let mut left = self.steps_left.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *left == Some(0) {
            *left = None;
            drop(left);
            panic!("the plug was pulled");
        }
        *left = left.map(|steps| steps - 1);
    }
}

#[cfg(test)]
#[path = "effects_tests.rs"]
mod tests;
