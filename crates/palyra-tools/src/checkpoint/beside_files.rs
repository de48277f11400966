//! What became of everything but the content of files: links, directories, other names of a file, and trees that are filled again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::SystemTime;

use palyra_common::Digest;

use super::compare::{Author, Comparison, new_directories};
use super::look::Other;
use super::stamp::Stamp;
use crate::walk::{Flow, Found, Include, Walk};
use crate::{EntryFacts, EntryKind, FileChange, ToolError, WorkspacePath};

/// What stands at a place that is no file, by its digest.
type EntryState = (Digest, EntryKind);

/// What a directory, and anything else without content, counts as holding.
fn nothing() -> Digest {
    Digest::of(b"")
}

/// What something that is no file holds, and what it is.
fn content(other: &Other) -> (&[u8], EntryKind) {
    match &other.link {
        Some(target) => (target, EntryKind::Link),
        None => (b"", EntryKind::Other),
    }
}

impl Comparison<'_> {
    /// Links that lead elsewhere now or are gone. Of a pipe, a socket or a device nothing can be taken back.
    pub(super) fn others_before(&mut self) -> Result<(), ToolError> {
        let checkpoint = self.checkpoint;
        for (path, old) in &checkpoint.others {
            let now = self.present.others.get(path).cloned();
            if now.as_ref() == Some(old) || (now.is_none() && self.present.is_hidden(path)) {
                continue;
            }
            if old.link.is_none() {
                let line = match now {
                    Some(now) => format!("`{path}` was {} and is {} now", old.what, now.what),
                    None => format!("`{path}`, which was no regular file, is gone"),
                };
                self.not_covered(line);
                continue;
            }
            let (target, before) = content(old);
            let after = now.as_ref().map(|now| {
                let (bytes, kind) = content(now);
                (Digest::of(bytes), kind)
            });
            let change = (Some((Digest::of(target), before)), after);
            if self.other_changed(path, change, None)? {
                self.artifacts.put(target)?;
            }
        }
        Ok(())
    }

    /// Links, pipes and sockets that were made.
    pub(super) fn new_others(&mut self) -> Result<(), ToolError> {
        let checkpoint = self.checkpoint;
        let new: Vec<(WorkspacePath, Other)> = self
            .present
            .others
            .iter()
            .filter(|(path, _)| !checkpoint.others.contains_key(path) && !checkpoint.was_unseen(path))
            .map(|(path, other)| (path.clone(), other.clone()))
            .collect();
        for (path, other) in new {
            let (bytes, kind) = content(&other);
            self.other_changed(&path, (None, Some((Digest::of(bytes), kind))), None)?;
        }
        Ok(())
    }

    /// Directories of build products and packages that were made.
    pub(super) fn trees(&mut self) -> Result<(), ToolError> {
        let checkpoint = self.checkpoint;
        let new: Vec<WorkspacePath> =
            self.present.skipped.iter().filter(|path| !checkpoint.was_unseen(path)).cloned().collect();
        for path in new {
            if !self.is_made_since(&path)? {
                self.not_covered(format!("`{path}` is new and holds what was there before"));
                continue;
            }
            if self.other_changed(&path, (None, Some((nothing(), EntryKind::Tree))), None)? {
                self.changed.excluded.insert(path.to_string());
            }
        }
        Ok(())
    }

    /// Whether everything in a directory was made since the checkpoint, or was copied for it: undo removes nothing else.
    fn is_made_since(&self, tree: &WorkspacePath) -> Result<bool, ToolError> {
        let checkpoint = self.checkpoint;
        let held = checkpoint.held();
        let (entries, old) = (AtomicUsize::new(0), AtomicBool::new(false));
        let enters = |_: &Found| true;
        let walk = Walk {
            start: tree.clone(),
            ignored: Include::Yes,
            ..Walk::whole(self.workspace, &self.hashing.cancel).covering_all(&enters)
        };
        let end = walk.run(|| {
            |found: &Found| {
                let stamp = found.directory.symlink_metadata(&found.name).map(|it| Stamp::of(&it, SystemTime::now()));
                let was_there = |stamp: Stamp| {
                    stamp.is_born_before(checkpoint.begun) && !held.contains(&stamp.identity()) && !found.kind.is_dir()
                };
                let too_many = entries.fetch_add(1, Ordering::Relaxed) >= checkpoint.limits.looked_through;
                if too_many || stamp.is_ok_and(was_there) {
                    old.store(true, Ordering::Relaxed);
                    return Flow::Stop;
                }
                Flow::Continue
            }
        })?;
        Ok(!old.into_inner() && end.unreadable.count == 0)
    }

    /// Names that a file no longer shares with another.
    pub(super) fn hard_links(&mut self) -> Result<(), ToolError> {
        let checkpoint = self.checkpoint;
        let changed: BTreeSet<String> = self.changed.changes.iter().map(|change| change.path.clone()).collect();
        let mut of: Vec<(WorkspacePath, String)> = Vec::new();
        for (identity, names) in self.linked.iter().filter(|(_, names)| names.len() > 1) {
            let is_same = |path: &&&WorkspacePath| {
                let now = self.present.files.get(**path).copied().flatten();
                !changed.contains(&path.to_string()) && now.is_some_and(|now| now.identity() == *identity)
            };
            let Some(anchor) = names.iter().find(is_same).or(names.first()) else { continue };
            let apart = names.iter().filter(|path| *path != anchor && !is_same(path));
            of.extend(apart.map(|path| ((*path).clone(), anchor.to_string())));
        }
        of.sort();
        for (path, anchor) in of {
            let text = path.to_string();
            if let Some(change) = self.changed.changes.iter_mut().find(|change| change.path == text) {
                change.entry.linked_to = Some(anchor);
                continue;
            }
            // The same content, but a file of its own.
            let Some((kept, before)) = checkpoint.files.get(&path).and_then(|kept| Some((kept, kept.content?))) else {
                continue;
            };
            let stamp = self.present.files.get(&path).copied().flatten();
            let Author::Call(attribution) = checkpoint.author(self.workspace, &path, stamp, Some(before), Some(before))
            else {
                continue;
            };
            self.artifacts.put(&checkpoint.store.read(&before)?)?;
            self.changed.changes.push(FileChange {
                path: text,
                before: Some(before),
                after: Some(before),
                before_mode: Some(kept.stamp.mode),
                directories: Vec::new(),
                attribution,
                entry: EntryFacts { linked_to: Some(anchor), ..EntryFacts::default() },
            });
        }
        Ok(())
    }

    /// Directories that are gone.
    pub(super) fn directories_before(&mut self) -> Result<(), ToolError> {
        let checkpoint = self.checkpoint;
        let now = self.present.directories.clone();
        let gone = checkpoint.directories.iter().filter(|(path, _)| !now.contains_key(*path));
        for (path, stamp) in gone {
            let is_there = self.workspace.dir().symlink_metadata(path.as_path()).is_ok_and(|it| it.is_dir());
            if !is_there && !self.present.is_hidden(path) {
                self.directory_changed(path, Some(stamp.mode), None)?;
            }
        }
        Ok(())
    }

    /// Directories that came or changed without a file that says so, and those that nobody can look into.
    pub(super) fn directories(&mut self) -> Result<(), ToolError> {
        let checkpoint = self.checkpoint;
        let told: BTreeSet<String> =
            self.changed.changes.iter().flat_map(|change| &change.directories).cloned().collect();
        let now = self.present.directories.clone();
        for (path, stamp) in &now {
            match checkpoint.directories.get(path) {
                Some(old) if old == stamp => {}
                Some(old) => {
                    if old.owner != stamp.owner {
                        self.not_covered(format!("the owner of the directory `{path}` changed"));
                    }
                    if old.mode != stamp.mode {
                        self.directory_changed(path, Some(old.mode), Some(()))?;
                    }
                }
                None if told.contains(&path.to_string()) || checkpoint.was_unseen(path) => {}
                None => self.directory_changed(path, None, Some(()))?,
            }
        }
        let unreadable = &self.present.unreadable;
        let mut lines = Vec::new();
        for path in unreadable.paths.iter().filter(|path| !checkpoint.unseen.contains(path)) {
            lines.push(format!("changes in `{path}`: the directory cannot be read"));
        }
        if unreadable.count > unreadable.paths.len() {
            let more = unreadable.count - unreadable.paths.len();
            lines.push(format!("changes in {more} more directories that cannot be read"));
        }
        self.changed.not_covered.extend(lines);
        Ok(())
    }

    fn directory_changed(
        &mut self,
        path: &WorkspacePath,
        before: Option<u32>,
        after: Option<()>,
    ) -> Result<(), ToolError> {
        let standing = |_| (nothing(), EntryKind::Directory);
        self.other_changed(path, (before.map(|_| standing(())), after.map(standing)), before).map(drop)
    }

    /// Notes a change of something that is no file, unless it was certainly somebody else's.
    fn other_changed(
        &mut self,
        path: &WorkspacePath,
        (before, after): (Option<EntryState>, Option<EntryState>),
        before_mode: Option<u32>,
    ) -> Result<bool, ToolError> {
        let checkpoint = self.checkpoint;
        let stamp = self.workspace.dir().symlink_metadata(path.as_path()).ok();
        let stamp = stamp.map(|metadata| Stamp::of(&metadata, SystemTime::now()));
        let digests = (before.map(|(digest, _)| digest), after.map(|(digest, _)| digest));
        let Author::Call(attribution) = checkpoint.author(self.workspace, path, stamp, digests.0, digests.1) else {
            return Ok(false);
        };
        let kind = |of: Option<(Digest, EntryKind)>| of.map_or(EntryKind::File, |(_, kind)| kind);
        let is = kind(after);
        if before == Some((nothing(), EntryKind::Directory)) {
            self.artifacts.put(b"")?;
        }
        let directories = match (before, after) {
            (None, Some(_)) if is != EntryKind::Directory => {
                new_directories(path, &checkpoint.directories, &self.present.directories)
            }
            (Some(_), None) if kind(before) != EntryKind::Directory => {
                new_directories(path, &self.present.directories, &checkpoint.directories)
            }
            _ => Vec::new(),
        };
        self.changed.changes.push(FileChange {
            path: path.to_string(),
            before: digests.0,
            after: digests.1,
            before_mode,
            directories,
            attribution,
            entry: EntryFacts { before: kind(before), after: is, linked_to: None, rebuilt: is == EntryKind::Tree },
        });
        Ok(true)
    }
}
