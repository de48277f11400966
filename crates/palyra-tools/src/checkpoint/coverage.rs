//! What a checkpoint covers, and what speaks against covering everything.
//!
//! Everything in the workspace is covered: `.git` as a whole, what ignore files exclude, links, directories and modes. Left out are files above a bound, which are named, and
//! large directories of build products and packages that ignore files exclude: whoever builds again has them again. What else is left out makes undo incomplete, and so does a name of a
//! file that lies outside the workspace as well (a hard link): whoever writes to the file writes there, too.

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::sync::{Mutex, PoisonError};

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, FileTypeExt as _, MetadataExt as _};

use super::CheckpointLimits;
use crate::cancel::Cancel;
use crate::containment::Reach;
use crate::walk::{Flow, Found, Include, Walk};
use crate::workspace::kind_name;
use crate::{ToolError, Workspace, WorkspacePath};

/// Directories that build tools and package managers fill, and fill again. Only where ignore files exclude them.
const REBUILT: [&str; 36] = [
    ".build",
    ".bundle",
    ".cargo-target",
    ".dart_tool",
    ".eggs",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".nyc_output",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".ruff_cache",
    ".stack-work",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".yarn",
    ".zig-cache",
    "DerivedData",
    "Pods",
    "__pycache__",
    "_build",
    "bower_components",
    "build",
    "dist",
    "dist-newstyle",
    "elm-stuff",
    "node_modules",
    "target",
    "vendor",
    "venv",
];

/// Most reasons of one kind that are told.
const NAMED: usize = 3;

/// Whether a path is a directory that is filled again, or lies in one.
pub(super) fn lies_in_rebuilt(path: &WorkspacePath) -> bool {
    path.as_path().iter().any(|name| REBUILT.iter().any(|rebuilt| name == *rebuilt))
}

/// Whether a directory that ignore files exclude is one that is filled again.
pub(crate) fn is_rebuilt(found: &Found) -> bool {
    found.excluded && found.kind.is_dir() && REBUILT.iter().any(|rebuilt| found.name == *rebuilt)
}

/// Whether such a directory is so small that it is copied like any other.
pub(super) fn is_small(found: &Found, limits: CheckpointLimits) -> bool {
    let Ok(top) = found.directory.open_dir_nofollow(&found.name) else { return false };
    let (mut entries, mut bytes) = (0_usize, 0_u64);
    let mut left: Vec<Dir> = vec![top];
    while let Some(directory) = left.pop() {
        let Ok(found) = directory.entries() else { return false };
        for entry in found {
            let Ok((entry, kind)) = entry.and_then(|entry| entry.file_type().map(|kind| (entry, kind))) else {
                return false;
            };
            entries += 1;
            if kind.is_dir() {
                let Ok(below) = directory.open_dir_nofollow(entry.file_name()) else { return false };
                left.push(below);
            } else if kind.is_file() {
                bytes = bytes.saturating_add(entry.metadata().map_or(0, |metadata| metadata.len()));
            }
            if entries > limits.tree_entries || bytes > limits.tree_bytes {
                return false;
            }
        }
    }
    true
}

/// Device and inode.
pub(super) type Inode = (u64, u64);

/// Files with several names, and the names that were seen.
#[derive(Debug, Default, Clone)]
pub(super) struct Names(BTreeMap<Inode, Seen>);

#[derive(Debug, Clone)]
struct Seen {
    /// How many names the file has.
    has: u64,
    seen: u64,
    first: WorkspacePath,
}

impl Names {
    /// Counts a name.
    pub(super) fn note(&mut self, inode: Inode, has: u64, path: &WorkspacePath) {
        if has < 2 {
            return;
        }
        let seen = self.0.entry(inode).or_insert_with(|| Seen { has, seen: 0, first: path.clone() });
        seen.seen += 1;
        if *path < seen.first {
            seen.first = path.clone();
        }
    }

    pub(super) fn join(&mut self, other: &Self) {
        for (inode, theirs) in &other.0 {
            let seen = self.0.entry(*inode).or_insert_with(|| Seen { seen: 0, ..theirs.clone() });
            seen.seen += theirs.seen;
        }
    }

    /// Files that have names elsewhere.
    fn elsewhere(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.0.values().filter(|seen| seen.seen < seen.has).map(|seen| &seen.first)
    }
}

/// What was found in the workspace that matters beside the files themselves.
#[derive(Debug, Default, Clone)]
pub(super) struct Findings {
    pub(super) names: Names,
    /// Things through which a program outside can be reached, and what they are.
    pub(super) doors: Vec<(WorkspacePath, &'static str)>,
    /// What is not copied, and why.
    pub(super) uncovered: Vec<String>,
    /// How many more.
    pub(super) more: usize,
}

impl Findings {
    /// Notes something that is not copied.
    pub(super) fn leave_out(&mut self, line: impl FnOnce() -> String) {
        if self.uncovered.len() < NAMED { self.uncovered.push(line()) } else { self.more += 1 }
    }

    /// Notes an entry that is neither a file nor a directory.
    pub(super) fn note_other(&mut self, found: &Found) {
        // Sockets are covered by the sandbox, and links lead nowhere from inside.
        if found.kind.is_fifo() || found.kind.is_block_device() || found.kind.is_char_device() {
            self.doors.push((found.path.clone(), kind_name(found.kind)));
        }
    }

    /// All that speaks against a call's being contained.
    pub(super) fn reaches(&self) -> Vec<Reach> {
        let mut reaches = Vec::new();
        let named = |path: &WorkspacePath| format!("`{path}`");
        let elsewhere: Vec<String> = self.names.elsewhere().map(named).collect();
        if !elsewhere.is_empty() {
            let what = format!("{} also has a name elsewhere (a hard link)", some(&elsewhere, 0));
            reaches.push(Reach::Outside(what));
        }
        let doors: Vec<String> = self.doors.iter().map(|(path, what)| format!("`{path}`, a {what}")).collect();
        if !doors.is_empty() {
            reaches.push(Reach::Outside(some(&doors, 0)));
        }
        if !self.uncovered.is_empty() {
            reaches.push(Reach::Undo(some(&self.uncovered, self.more)));
        }
        reaches
    }
}

/// The first of several, and how many more there are.
fn some(all: &[String], more: usize) -> String {
    let told: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
    let more = more + all.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", told.join(", "))
}

/// Looks through a directory that is not copied for what leads outside.
pub(super) fn look_through(
    workspace: &Workspace,
    tree: &WorkspacePath,
    limits: CheckpointLimits,
    cancel: &Cancel,
) -> Result<Findings, ToolError> {
    let looked = Mutex::new((0_usize, Findings::default()));
    let enters = |_: &Found| true;
    let walk =
        Walk { start: tree.clone(), ignored: Include::Yes, ..Walk::whole(workspace, cancel).covering_all(&enters) };
    let end = walk.run(|| {
        |found: &Found| {
            let metadata = found.kind.is_file().then(|| found.directory.symlink_metadata(&found.name).ok()).flatten();
            let mut looked = looked.lock().unwrap_or_else(PoisonError::into_inner);
            looked.0 += 1;
            if looked.0 > limits.looked_through {
                return Flow::Stop;
            }
            if let Some(metadata) = metadata {
                looked.1.names.note((metadata.dev(), metadata.ino()), metadata.nlink(), &found.path);
            } else if !found.kind.is_dir() {
                looked.1.note_other(found);
            }
            Flow::Continue
        }
    })?;
    let (entries, mut findings) = looked.into_inner().unwrap_or_else(PoisonError::into_inner);
    if entries > limits.looked_through {
        findings.leave_out(|| format!("`{tree}` has more than {} entries", limits.looked_through));
    }
    for path in end.unreadable.paths {
        findings.leave_out(|| format!("`{path}` cannot be read"));
    }
    Ok(findings)
}

/// Whether this process may read a file.
pub(super) fn may_be_read(found: &Found) -> bool {
    use rustix::fs::{Access, AtFlags};
    rustix::fs::accessat(found.directory.as_fd(), &found.name, Access::READ_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_are_counted_per_file() {
        let path = |text: &str| WorkspacePath::found(Path::new(text));
        let mut names = Names::default();
        names.note((1, 7), 2, &path("b"));
        assert_eq!(names.elsewhere().collect::<Vec<_>>(), [&path("b")]);
        let mut tree = Names::default();
        tree.note((1, 7), 2, &path("a"));
        tree.note((1, 8), 1, &path("alone"));
        names.join(&tree);
        assert_eq!(names.elsewhere().count(), 0);
    }

    #[test]
    fn reasons_are_few_and_say_how_many_more_there_are() {
        let mut findings = Findings::default();
        for number in 0..5 {
            findings.leave_out(|| format!("`f{number}`"));
        }
        assert_eq!(findings.reaches(), [Reach::Undo("`f0`, `f1`, `f2` and 2 more".to_owned())]);
    }
}
