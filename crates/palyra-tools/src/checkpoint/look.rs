//! What is in a workspace now.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use cap_std::fs::{Metadata, MetadataExt as _};

use super::stamp::Stamp;
use crate::cancel::Cancel;
use crate::walk::{Enters, Flow, Found, Unreadable, Walk};
use crate::workspace::kind_name;
use crate::workspace_path::escape;
use crate::{ToolError, Workspace, WorkspacePath};

/// Permissions and owner of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectoryStamp {
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
}

impl DirectoryStamp {
    /// Of a directory that a walk has just found; one that is gone again has none.
    pub(super) fn of(found: &Found) -> Self {
        let metadata = found.directory.symlink_metadata(&found.name);
        metadata.map_or(Self { mode: 0, owner: (0, 0) }, |metadata| Self::from(&metadata))
    }

    /// Of the workspace itself, which no walk finds.
    pub(super) fn of_workspace(workspace: &Workspace) -> Result<Self, ToolError> {
        let metadata = workspace.dir().dir_metadata();
        metadata.map(|metadata| Self::from(&metadata)).map_err(|error| workspace.refuse(&WorkspacePath::root(), error))
    }
}

impl From<&Metadata> for DirectoryStamp {
    fn from(metadata: &Metadata) -> Self {
        Self { mode: metadata.mode() & 0o7777, owner: (metadata.uid(), metadata.gid()) }
    }
}

/// The files as they are now.
#[derive(Default)]
pub(super) struct Present {
    /// What the walk saw of each file, straight from the directory that it was in.
    pub(super) files: BTreeMap<WorkspacePath, Option<Stamp>>,
    pub(super) directories: BTreeMap<WorkspacePath, DirectoryStamp>,
    pub(super) others: BTreeMap<WorkspacePath, Other>,
    /// Directories that were not entered because they are filled again.
    pub(super) skipped: BTreeSet<WorkspacePath>,
    /// Files that ignore files exclude.
    pub(super) excluded: BTreeSet<WorkspacePath>,
    pub(super) unreadable: Unreadable,
}

/// What is at a path.
pub(super) enum At {
    File(Stamp),
    /// Certainly no regular file.
    Nothing,
    /// Nobody can tell.
    Unknown(std::io::Error),
}

impl Present {
    /// Walks the workspace; `enters` says which of the excluded directories are entered.
    pub(super) fn look(workspace: &Workspace, enters: &Enters<'_>, cancel: &Cancel) -> Result<Self, ToolError> {
        let present = Mutex::new(Self::default());
        let end = Walk::whole(workspace, cancel).covering_all(enters).run(|| {
            |found: &Found| {
                // Before the lock: this is what takes the time, and all threads do it at once.
                let seen = Seen::of(found);
                present.lock().unwrap_or_else(PoisonError::into_inner).add(found, seen);
                Flow::Continue
            }
        })?;
        let mut present = present.into_inner().unwrap_or_else(PoisonError::into_inner);
        present.directories.insert(WorkspacePath::root(), DirectoryStamp::of_workspace(workspace)?);
        Ok(Self { unreadable: end.unreadable, ..present })
    }

    fn add(&mut self, found: &Found, seen: Seen) {
        let path = found.path.clone();
        match seen {
            Seen::Skipped => drop(self.skipped.insert(path)),
            Seen::Directory(stamp) => drop(self.directories.insert(path, stamp)),
            Seen::File(stamp) => {
                if found.excluded {
                    self.excluded.insert(path.clone());
                }
                self.files.insert(path, stamp);
            }
            Seen::Other(other) => drop(self.others.insert(path, other)),
        }
    }

    /// What is at a path that the checkpoint knows. What the walk did not see is asked for by its name: whoever writes an ignore file would otherwise
    /// decide what is looked at.
    pub(super) fn at(&self, workspace: &Workspace, path: &WorkspacePath) -> At {
        if let Some(stamp) = self.files.get(path).copied().flatten() {
            return At::File(stamp);
        }
        // A name is looked up through links, and what is behind one that stands there now is another file.
        let in_the_way = |above: &WorkspacePath| self.others.contains_key(above) || self.files.contains_key(above);
        if std::iter::successors(path.parent(), WorkspacePath::parent).any(|above| in_the_way(&above)) {
            return At::Nothing;
        }
        match workspace.dir().symlink_metadata(path.as_path()) {
            Ok(metadata) => stamp_of(&metadata).map_or(At::Nothing, At::File),
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => At::Nothing,
                _ => At::Unknown(error),
            },
        }
    }

    /// Whether the path lies in a directory that could not be read.
    pub(super) fn is_hidden(&self, path: &WorkspacePath) -> bool {
        self.unreadable.paths.iter().any(|directory| path.as_path().starts_with(directory.as_path()))
    }
}

enum Seen {
    Skipped,
    Directory(DirectoryStamp),
    File(Option<Stamp>),
    Other(Other),
}

impl Seen {
    fn of(found: &Found) -> Self {
        if found.skipped {
            Self::Skipped
        } else if found.kind.is_dir() {
            Self::Directory(DirectoryStamp::of(found))
        } else if found.kind.is_file() {
            Self::File(found.directory.symlink_metadata(&found.name).ok().as_ref().and_then(stamp_of))
        } else {
            Self::Other(Other::of(found))
        }
    }
}

fn stamp_of(metadata: &Metadata) -> Option<Stamp> {
    metadata.is_file().then(|| Stamp::of(metadata, SystemTime::now()))
}

/// Something that is neither a file nor a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Other {
    /// What it is, for people.
    pub(super) what: String,
    /// Where it leads, if it is a link.
    pub(super) link: Option<Vec<u8>>,
}

impl Other {
    pub(super) fn of(found: &Found) -> Self {
        if found.kind.is_symlink()
            && let Ok(target) = rustix::fs::readlinkat(found.directory.as_fd(), &found.name, Vec::new())
        {
            use std::os::unix::ffi::OsStrExt as _;
            let target = target.into_bytes();
            let what = format!("a link to `{}`", escape(std::ffi::OsStr::from_bytes(&target)));
            return Self { what, link: Some(target) };
        }
        Self { what: kind_name(found.kind).to_owned(), link: None }
    }
}
