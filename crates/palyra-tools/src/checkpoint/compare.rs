//! What became of the files since a checkpoint.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use cap_std::fs::Metadata;
use palyra_common::{ChangeAttribution, Digest};
use tokio_util::sync::CancellationToken;

use super::stamp::{Identity, Stamp};
use super::{Checkpoint, Kept};
use crate::cancel::Cancel;
use crate::walk::{Flow, Found, Walk};
use crate::{Artifacts, FileChange, ToolError, Workspace, WorkspacePath};

/// What differs from a checkpoint.
#[derive(Debug, Default)]
pub struct Changed {
    /// Files that can be taken back.
    pub changes: Vec<FileChange>,
    /// What was changed and cannot be taken back, one line each.
    pub not_covered: Vec<String>,
}

/// Where a file comes from that a checkpoint does not hold.
enum Origin {
    /// It was made since.
    Made,
    /// It was there, unseen, and is as it was.
    CameIntoSight,
    /// It was there, unseen, in a form that nobody kept.
    Unknown,
}

/// The files as they are now.
#[derive(Default)]
struct Present {
    /// What the walk saw of each file, straight from the directory that it was in.
    files: BTreeMap<WorkspacePath, Option<Stamp>>,
    directories: BTreeSet<WorkspacePath>,
    others: BTreeSet<WorkspacePath>,
}

impl Checkpoint {
    /// Compares the workspace with the checkpoint and keeps what was there before as artifacts; blocks until it is done or `token` is cancelled.
    ///
    /// # Errors
    /// When the workspace cannot be read, what was there before cannot be kept, or the comparison is cancelled.
    pub fn changes(
        &self,
        workspace: &Workspace,
        artifacts: &dyn Artifacts,
        token: &CancellationToken,
    ) -> Result<Changed, ToolError> {
        let mut hashing = Hashing { cancel: Cancel::of(token), left: self.hashed_bytes };
        let present = look(workspace, &hashing.cancel)?;
        hashing.cancel.check()?;
        let mut changed = Changed::default();
        for (path, kept) in &self.files {
            // What the walk did not see is asked for by its name: whoever writes an ignore file would otherwise decide what is looked at.
            let now = present.files.get(path).copied().flatten().or_else(|| stamp_now(workspace, path));
            if !now.is_some_and(|now| now.proves_unchanged_since(&kept.stamp)) {
                self.compare(workspace, artifacts, path, kept, now, &present, &mut hashing, &mut changed)?;
            }
        }
        // Made once, and only if there are new files: a directory that was moved may hold very many.
        let held = LazyCell::new(|| self.held());
        for (path, stamp) in present.files.iter().filter(|(path, _)| !self.files.contains_key(path)) {
            if self.others.contains(path) {
                changed.not_covered.push(format!("`{path}` was not a regular file before"));
                continue;
            }
            match self.origin(path, *stamp, &held) {
                Origin::Made => {}
                Origin::CameIntoSight => continue,
                Origin::Unknown => {
                    changed.not_covered.push(format!("`{path}` changed and was not copied before"));
                    continue;
                }
            }
            let after = match hashing.digest_now(workspace, path)? {
                Hashed::Content(after, _) => after,
                Hashed::Gone => continue,
                Hashed::TooMuch(bytes) => {
                    changed.not_covered.push(self.unhashed(path, bytes));
                    continue;
                }
            };
            let directories = new_directories(path, &self.directories, &present.directories);
            changed.changes.push(FileChange {
                path: path.to_string(),
                before: None,
                after: Some(after),
                before_mode: None,
                directories,
                attribution: ChangeAttribution::Observed,
            });
        }
        for path in present.others.difference(&self.others) {
            changed.not_covered.push(format!("`{path}` is new and no regular file"));
        }
        for path in self.others.iter().filter(|path| !present.others.contains(path)) {
            changed.not_covered.push(format!("`{path}`, which was no regular file, is gone"));
        }
        Ok(changed)
    }

    /// Where a file comes from that the checkpoint does not hold. Undo removes only what was certainly made since.
    fn origin(&self, path: &WorkspacePath, stamp: Option<Stamp>, held: &HashSet<Identity>) -> Origin {
        let unchanged = stamp.is_some_and(|stamp| stamp.is_older_than(self.begun));
        let mut here = Some(path.clone());
        while let Some(at) = here.filter(|_| !self.unseen.is_empty()) {
            if self.unseen.contains(&at) {
                return if unchanged { Origin::CameIntoSight } else { Origin::Unknown };
            }
            here = at.parent();
        }
        match stamp {
            _ if unchanged => Origin::CameIntoSight,
            // A file that was copied under another name may be removed here; one that was not would be lost.
            Some(stamp) if stamp.is_born_before(self.begun) && !held.contains(&stamp.identity()) => Origin::Unknown,
            _ => Origin::Made,
        }
    }

    fn unhashed(&self, path: &WorkspacePath, bytes: u64) -> String {
        format!(
            "`{path}` changed and was not hashed: it has {bytes} bytes, and at most {} are hashed",
            self.hashed_bytes
        )
    }

    /// The files that copies were made of, whatever they are called now.
    fn held(&self) -> HashSet<Identity> {
        self.files.values().filter(|kept| kept.content.is_some()).map(|kept| kept.stamp.identity()).collect()
    }

    #[expect(clippy::too_many_arguments, reason = "one file in all its aspects, for one caller")]
    fn compare(
        &self,
        workspace: &Workspace,
        artifacts: &dyn Artifacts,
        path: &WorkspacePath,
        kept: &Kept,
        stamp: Option<Stamp>,
        present: &Present,
        hashing: &mut Hashing,
        changed: &mut Changed,
    ) -> Result<(), ToolError> {
        let Some(before) = kept.content else {
            changed.not_covered.push(format!("`{path}` changed and was not copied before"));
            return Ok(());
        };
        let hashed = if stamp.is_some() { hashing.digest_now(workspace, path)? } else { Hashed::Gone };
        let now = match hashed {
            Hashed::Content(digest, mode) => Some((digest, mode)),
            Hashed::Gone => None,
            Hashed::TooMuch(bytes) => {
                changed.not_covered.push(self.unhashed(path, bytes));
                return Ok(());
            }
        };
        if now == Some((before, kept.stamp.mode)) {
            return Ok(());
        }
        artifacts.put(&self.store.read(&before)?)?;
        let gone = now.is_none();
        changed.changes.push(FileChange {
            path: path.to_string(),
            before: Some(before),
            after: now.map(|(digest, _)| digest),
            before_mode: Some(kept.stamp.mode),
            directories: if gone { new_directories(path, &present.directories, &self.directories) } else { Vec::new() },
            attribution: ChangeAttribution::Observed,
        });
        Ok(())
    }
}

/// The stamp of a path if a regular file is there.
fn stamp_now(workspace: &Workspace, path: &WorkspacePath) -> Option<Stamp> {
    stamp_of(&workspace.dir().symlink_metadata(path.as_path()).ok()?)
}

/// The same of what a walk has just found.
fn stamp_here(found: &Found) -> Option<Stamp> {
    stamp_of(&found.directory.symlink_metadata(&found.name).ok()?)
}

fn stamp_of(metadata: &Metadata) -> Option<Stamp> {
    metadata.is_file().then(|| Stamp::of(metadata, SystemTime::now()))
}

/// Hashing of what changed, bounded: a program can make a file of any length for nothing.
struct Hashing {
    cancel: Cancel,
    /// Bytes that may still be hashed.
    left: u64,
}

enum Hashed {
    /// What the file is, and its mode.
    Content(Digest, u32),
    /// It is not there, or not for us to read.
    Gone,
    /// Its size is more than is left to be hashed.
    TooMuch(u64),
}

impl Hashing {
    fn digest_now(&mut self, workspace: &Workspace, path: &WorkspacePath) -> Result<Hashed, ToolError> {
        let Ok(mut file) = workspace.open_file(path) else { return Ok(Hashed::Gone) };
        let bytes = file.size();
        let Some(left) = self.left.checked_sub(bytes) else { return Ok(Hashed::TooMuch(bytes)) };
        self.left = left;
        let mode = file.mode();
        Ok(Hashed::Content(file.digest(&self.cancel)?, mode))
    }
}

/// The directories above a path that are among `present` and not among `before`, outermost first.
fn new_directories(
    path: &WorkspacePath,
    before: &BTreeSet<WorkspacePath>,
    present: &BTreeSet<WorkspacePath>,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut above = path.parent();
    while let Some(directory) = above.filter(|directory| !directory.is_root()) {
        if present.contains(&directory) && !before.contains(&directory) {
            found.push(directory.to_string());
        }
        above = directory.parent();
    }
    found.reverse();
    found
}

fn look(workspace: &Workspace, cancel: &Cancel) -> Result<Present, ToolError> {
    let present = Mutex::new(Present::default());
    Walk::whole(workspace, cancel).run(|| {
        |found: &Found| {
            // Before the lock: this is what takes the time, and all threads do it at once.
            let stamp = found.kind.is_file().then(|| stamp_here(found)).flatten();
            let mut present = present.lock().unwrap_or_else(PoisonError::into_inner);
            if found.kind.is_dir() {
                present.directories.insert(found.path.clone());
            } else if found.kind.is_file() {
                present.files.insert(found.path.clone(), stamp);
            } else {
                present.others.insert(found.path.clone());
            }
            Flow::Continue
        }
    })?;
    Ok(present.into_inner().unwrap_or_else(PoisonError::into_inner))
}
