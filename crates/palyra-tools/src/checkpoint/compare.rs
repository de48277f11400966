//! What became of the files since a checkpoint.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use palyra_common::{ChangeAttribution, Digest};
use tokio_util::sync::CancellationToken;

use super::activity::Reported;
use super::coverage::{is_rebuilt, lies_in_rebuilt};
use super::look::{At, DirectoryStamp, Present};
use super::stamp::{Identity, Stamp, last_change};
use super::{Checkpoint, Kept, WriterVisibility, attributes};
use crate::cancel::Cancel;
use crate::walk::Found;
use crate::{Artifacts, EntryFacts, FileChange, ToolError, Workspace, WorkspacePath};

/// What undo never gives a file: with another content they would make another program privileged.
const SPECIAL_BITS: &str = "the set-user-id, set-group-id or sticky bit";

/// What differs from a checkpoint.
#[derive(Debug, Default)]
pub struct Changed {
    /// Files that can be taken back.
    pub changes: Vec<FileChange>,
    /// What was changed and cannot be taken back, one line each.
    pub not_covered: Vec<String>,
    /// Of the files, those that ignore files exclude.
    pub excluded: BTreeSet<String>,
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

/// Who changed a file, as far as that is known.
pub(super) enum Author {
    /// Certainly somebody else.
    Other,
    /// The call, with this certainty.
    Call(ChangeAttribution),
}

/// One comparison.
pub(super) struct Comparison<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) workspace: &'a Workspace,
    pub(super) artifacts: &'a dyn Artifacts,
    pub(super) present: Present,
    pub(super) hashing: Hashing,
    pub(super) changed: Changed,
    /// Files that had several names in the workspace.
    pub(super) linked: HashMap<Identity, Vec<&'a WorkspacePath>>,
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
        self.call.ended();
        let hashing = Hashing { cancel: Cancel::of(token), left: self.limits.hashed_bytes };
        // What was copied is compared, however large it has become; what is new and filled again is told as a whole.
        let enters = |found: &Found| !is_rebuilt(found) || self.directories.contains_key(&found.path);
        let present = Present::look(workspace, &enters, &hashing.cancel)?;
        hashing.cancel.check()?;
        let changed = Changed::default();
        let linked = self.linked();
        let mut comparison = Comparison { checkpoint: self, workspace, artifacts, present, hashing, changed, linked };
        comparison.known_files()?;
        // What made way comes before what took its place.
        comparison.others_before()?;
        comparison.directories_before()?;
        comparison.new_files()?;
        comparison.new_others()?;
        comparison.trees()?;
        comparison.hard_links()?;
        comparison.directories()?;
        let Comparison { present, hashing, mut changed, .. } = comparison;
        changed.not_covered.extend(self.excluded_changes(workspace, &present, &hashing.cancel)?);
        Ok(changed)
    }

    /// Where a file comes from that the checkpoint does not hold. Undo removes only what was certainly made since.
    fn origin(&self, path: &WorkspacePath, stamp: Option<Stamp>, held: &HashSet<Identity>) -> Origin {
        let unchanged = stamp.is_some_and(|stamp| stamp.is_older_than(self.begun));
        if self.was_unseen(path) {
            return if unchanged { Origin::CameIntoSight } else { Origin::Unknown };
        }
        match stamp {
            _ if unchanged => Origin::CameIntoSight,
            // A file that was copied under another name may be removed here; one that was not would be lost.
            Some(stamp) if stamp.is_born_before(self.begun) && !held.contains(&stamp.identity()) => Origin::Unknown,
            _ => Origin::Made,
        }
    }

    /// Whether the path, or a directory above it, was there and not looked at.
    pub(super) fn was_unseen(&self, path: &WorkspacePath) -> bool {
        let mut here = Some(path.clone());
        while let Some(at) = here.filter(|_| !self.unseen.is_empty()) {
            if self.unseen.contains(&at) {
                return true;
            }
            here = at.parent();
        }
        false
    }

    fn unhashed(&self, path: &WorkspacePath, bytes: u64) -> String {
        format!(
            "`{path}` changed and was not hashed: it has {bytes} bytes, and at most {} are hashed",
            self.limits.hashed_bytes
        )
    }

    /// The files that copies were made of, whatever they are called now.
    pub(super) fn held(&self) -> HashSet<Identity> {
        self.files.values().filter(|kept| kept.content.is_some()).map(|kept| kept.stamp.identity()).collect()
    }

    /// Files that had several names, with those in the workspace.
    fn linked(&self) -> HashMap<Identity, Vec<&WorkspacePath>> {
        let mut linked: HashMap<Identity, Vec<&WorkspacePath>> = HashMap::new();
        for (path, kept) in self.files.iter().filter(|(_, kept)| kept.stamp.links > 1 && kept.content.is_some()) {
            linked.entry(kept.stamp.identity()).or_default().push(path);
        }
        linked
    }

    /// Who changed a file that is there now (with its stamp) or is gone.
    pub(super) fn author(
        &self,
        workspace: &Workspace,
        path: &WorkspacePath,
        stamp: Option<Stamp>,
        before: Option<Digest>,
        after: Option<Digest>,
    ) -> Author {
        match self.call.reported(path) {
            Reported::Nothing => {}
            // The tool that wrote it says so itself.
            Reported::Wrote { before: first, after: last } if first == before && last == after => return Author::Other,
            Reported::Wrote { .. } => return Author::Call(ChangeAttribution::Contested),
        }
        if self.writers == WriterVisibility::Absent {
            return Author::Call(ChangeAttribution::Contested);
        }
        let changed = match stamp {
            Some(stamp) => stamp.change_time(),
            // Whoever removed it changed the directory that it was in, or removed that, too.
            None => match std::iter::successors(path.parent(), WorkspacePath::parent)
                .find_map(|above| workspace.metadata(&above).ok())
            {
                Some(metadata) => last_change(&metadata),
                None => return Author::Call(ChangeAttribution::Contested),
            },
        };
        let made = stamp.filter(|_| before.is_none()).and_then(|stamp| stamp.birth_time());
        let was_idle = made.is_some_and(|made| self.call.idle.cover(made.min(changed), changed));
        if was_idle && self.writers == WriterVisibility::Complete {
            // From when it was made until it was last changed, the program did not run.
            return Author::Other;
        }
        let contested = self.call.idle.cover(changed, changed) || self.call.is_shared(path.as_path(), changed);
        Author::Call(if contested { ChangeAttribution::Contested } else { ChangeAttribution::Observed })
    }
}

impl Comparison<'_> {
    fn known_files(&mut self) -> Result<(), ToolError> {
        let checkpoint = self.checkpoint;
        for (path, kept) in &checkpoint.files {
            let now = match self.present.at(self.workspace, path) {
                At::File(stamp) if stamp.proves_unchanged_since(&kept.stamp) => continue,
                At::File(stamp) => Some(stamp),
                At::Nothing => None,
                At::Unknown(_) if self.present.is_hidden(path) => continue,
                At::Unknown(error) => {
                    self.not_covered(format!("`{path}` cannot be looked at any more: {error}"));
                    continue;
                }
            };
            self.known_file(path, kept, now)?;
        }
        Ok(())
    }

    fn known_file(&mut self, path: &WorkspacePath, kept: &Kept, stamp: Option<Stamp>) -> Result<(), ToolError> {
        let checkpoint = self.checkpoint;
        let Some(before) = kept.content else {
            self.not_covered(format!("`{path}` changed and was not copied before"));
            return Ok(());
        };
        let hashed = if stamp.is_some() { self.hashing.digest_now(self.workspace, path)? } else { Hashed::Gone };
        let now = match hashed {
            Hashed::Content(digest, mode) => Some((digest, mode)),
            Hashed::Gone => None,
            Hashed::TooMuch(bytes) => {
                self.not_covered(checkpoint.unhashed(path, bytes));
                return Ok(());
            }
            Hashed::Unreadable(error) => {
                self.not_covered(format!("`{path}` changed and cannot be read: {error}"));
                return Ok(());
            }
        };
        let same = now == Some((before, kept.stamp.mode));
        if let Some(stamp) = stamp {
            self.attributes(path, kept, stamp, same);
        }
        if same {
            return Ok(());
        }
        let after = now.map(|(digest, _)| digest);
        let Author::Call(attribution) = checkpoint.author(self.workspace, path, stamp, Some(before), after) else {
            return Ok(());
        };
        self.artifacts.put(&checkpoint.store.read(&before)?)?;
        let directories = match after {
            Some(_) => Vec::new(),
            None => {
                self.attributes_of_deleted(path, kept);
                new_directories(path, &self.present.directories, &checkpoint.directories)
            }
        };
        self.changed.changes.push(FileChange {
            path: path.to_string(),
            before: Some(before),
            after,
            before_mode: Some(kept.stamp.mode),
            directories,
            attribution,
            entry: EntryFacts { rebuilt: kept.excluded && lies_in_rebuilt(path), ..EntryFacts::default() },
        });
        if kept.excluded {
            self.changed.excluded.insert(path.to_string());
        }
        Ok(())
    }

    /// What changed about a file beside content and permissions, and what of it is lost if those are restored.
    fn attributes(&mut self, path: &WorkspacePath, kept: &Kept, stamp: Stamp, same_content: bool) {
        let mut lines = Vec::new();
        let ((user, group), (new_user, new_group)) = (kept.stamp.owner, stamp.owner);
        if (user, group) != (new_user, new_group) {
            lines.push(format!("the owner of `{path}` changed from {user}:{group} to {new_user}:{new_group}"));
        }
        if kept.stamp.special != stamp.special || (kept.stamp.special != 0 && !same_content) {
            lines.push(format!("{SPECIAL_BITS} of `{path}`, which undo does not restore"));
        }
        let attributes = self.workspace.open_file(path).ok().and_then(|opened| attributes::of(&opened.file));
        if attributes != kept.attributes {
            lines.push(format!("the extended attributes of `{path}` changed"));
        } else if !same_content && attributes.is_some() {
            lines.push(format!("`{path}` has extended attributes, which undo does not restore"));
        }
        let names = self.linked.get(&kept.stamp.identity()).map_or(1, Vec::len) as u64;
        if kept.stamp.links > names && (stamp.links != kept.stamp.links || !same_content) {
            lines.push(format!(
                "`{path}` had {} names (hard links); undo restores it as a file of its own",
                kept.stamp.links
            ));
        } else if stamp.links > kept.stamp.links && self.names_of(stamp) < stamp.links {
            lines.push(format!("`{path}` has another name (hard link) now, which is not covered"));
        }
        self.changed.not_covered.extend(lines);
    }

    /// What a deleted file had beside content and permissions that it will not have again.
    fn attributes_of_deleted(&mut self, path: &WorkspacePath, kept: &Kept) {
        let owner = kept.stamp.owner;
        if self.owner_when_restored(path).is_some_and(|restored| restored != owner) {
            self.not_covered(format!("`{path}` belonged to {}:{}, which undo does not restore", owner.0, owner.1));
        }
        if kept.stamp.special != 0 {
            self.not_covered(format!("{SPECIAL_BITS} of `{path}`, which undo does not restore"));
        }
        if kept.attributes.is_some() {
            self.not_covered(format!("`{path}` had extended attributes, which undo does not restore"));
        }
        let names = self.linked.get(&kept.stamp.identity()).map_or(1, Vec::len) as u64;
        if kept.stamp.links > names {
            let count = kept.stamp.links;
            self.not_covered(format!("`{path}` had {count} names (hard links); undo restores it as a file of its own"));
        }
    }

    /// To whom a file will belong that undo makes anew: to this process, or to the owner of its directory if this process is root.
    fn owner_when_restored(&self, path: &WorkspacePath) -> Option<(u32, u32)> {
        let parent = path.parent()?;
        let directory = match self.checkpoint.directories.get(&parent) {
            Some(stamp) => *stamp,
            None => DirectoryStamp::from(&self.workspace.dir().dir_metadata().ok()?),
        };
        if rustix::process::geteuid().is_root() {
            return Some(directory.owner);
        }
        let passes_its_group_on = directory.mode & 0o2000 != 0;
        let group = if passes_its_group_on { directory.owner.1 } else { rustix::process::getegid().as_raw() };
        Some((rustix::process::geteuid().as_raw(), group))
    }

    fn new_files(&mut self) -> Result<(), ToolError> {
        let checkpoint = self.checkpoint;
        // Made once, and only if there are new files: a directory that was moved may hold very many.
        let held = LazyCell::new(|| checkpoint.held());
        let new: Vec<_> = self
            .present
            .files
            .iter()
            .filter(|(path, _)| !checkpoint.files.contains_key(path))
            .map(|(path, stamp)| (path.clone(), *stamp))
            .collect();
        for (path, stamp) in new {
            if checkpoint.others.get(&path).is_some_and(|other| other.link.is_none()) {
                self.not_covered(format!("`{path}` was not a regular file before"));
                continue;
            }
            match checkpoint.origin(&path, stamp, &held) {
                Origin::Made => {}
                Origin::CameIntoSight => continue,
                Origin::Unknown => {
                    self.not_covered(format!("`{path}` changed and was not copied before"));
                    continue;
                }
            }
            let after = match self.hashing.digest_now(self.workspace, &path)? {
                Hashed::Content(after, _) => after,
                Hashed::Gone => continue,
                Hashed::TooMuch(bytes) => {
                    self.not_covered(checkpoint.unhashed(&path, bytes));
                    continue;
                }
                Hashed::Unreadable(error) => {
                    self.not_covered(format!("`{path}` is new and cannot be read: {error}"));
                    continue;
                }
            };
            let Author::Call(attribution) = checkpoint.author(self.workspace, &path, stamp, None, Some(after)) else {
                continue;
            };
            let directories = new_directories(&path, &checkpoint.directories, &self.present.directories);
            self.changed.changes.push(FileChange {
                path: path.to_string(),
                before: None,
                after: Some(after),
                before_mode: None,
                directories,
                attribution,
                entry: EntryFacts {
                    rebuilt: self.present.excluded.contains(&path) && lies_in_rebuilt(&path),
                    ..EntryFacts::default()
                },
            });
            if self.present.excluded.contains(&path) {
                self.changed.excluded.insert(path.to_string());
            }
        }
        Ok(())
    }

    /// How many names of a file there are in the workspace.
    fn names_of(&self, stamp: Stamp) -> u64 {
        let is_one = |seen: &&Option<Stamp>| seen.is_some_and(|seen| seen.identity() == stamp.identity());
        self.present.files.values().filter(is_one).count() as u64
    }

    pub(super) fn not_covered(&mut self, line: String) {
        self.changed.not_covered.push(line);
    }
}

/// Hashing of what changed, bounded: a program can make a file of any length for nothing.
pub(super) struct Hashing {
    pub(super) cancel: Cancel,
    /// Bytes that may still be hashed.
    left: u64,
}

enum Hashed {
    /// What the file is, and its mode.
    Content(Digest, u32),
    /// It is not there any more.
    Gone,
    /// Its size is more than is left to be hashed.
    TooMuch(u64),
    /// It is there, and not for us to read.
    Unreadable(ToolError),
}

impl Hashing {
    fn digest_now(&mut self, workspace: &Workspace, path: &WorkspacePath) -> Result<Hashed, ToolError> {
        let mut file = match workspace.open_file(path) {
            Ok(file) => file,
            Err(
                ToolError::PathNotFound { .. }
                | ToolError::PathIsDirectory { .. }
                | ToolError::PathNotDirectory { .. }
                | ToolError::SpecialFile { .. },
            ) => return Ok(Hashed::Gone),
            Err(error) => return Ok(Hashed::Unreadable(error)),
        };
        let bytes = file.size();
        let Some(left) = self.left.checked_sub(bytes) else { return Ok(Hashed::TooMuch(bytes)) };
        self.left = left;
        let mode = file.mode();
        Ok(Hashed::Content(file.digest(&self.cancel)?, mode))
    }
}

/// The directories above a path that are among `present` and not among `before`, outermost first.
pub(super) fn new_directories<T>(
    path: &WorkspacePath,
    before: &BTreeMap<WorkspacePath, T>,
    present: &BTreeMap<WorkspacePath, T>,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut above = path.parent();
    while let Some(directory) = above.filter(|directory| !directory.is_root()) {
        if present.contains_key(&directory) && !before.contains_key(&directory) {
            found.push(directory.to_string());
        }
        above = directory.parent();
    }
    found.reverse();
    found
}
