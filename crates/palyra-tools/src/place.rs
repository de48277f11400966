//! One file's place in the workspace: its directory, held open, and its name.
//!
//! The directory is walked to from the workspace's handle without following any link, so what is read, replaced and removed is
//! in the same directory, even if the path is swapped meanwhile. A replacement is written beside the file, made durable, and
//! renamed over it; the directory is made durable after. What else the file had (see `attributes`) it keeps.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Component;

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use palyra_common::Digest;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};

use crate::attributes::Attributes;
use crate::cancel::Cancel;
use crate::{EntryKind, ToolError, Workspace, WorkspacePath};

/// Files above this are not hashed: none of those that are written or taken back here is as long, and a program can make one of any length for nothing.
const MOST_HASHED: u64 = 4 << 30;

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) kind: EntryKind,
    /// Its content, where that leads, or nothing.
    pub(crate) digest: Digest,
    pub(crate) mode: u32,
    /// Device and inode.
    pub(crate) inode: (u64, u64),
    /// When it last changed.
    pub(crate) changed: (i64, i64),
}

impl Standing {
    /// Whether it is this.
    pub(crate) fn is(&self, kind: EntryKind, digest: Option<Digest>) -> bool {
        let kind = if kind == EntryKind::Tree { EntryKind::Directory } else { kind };
        (self.kind, Some(self.digest)) == (kind, digest)
    }
}

/// A directory of the workspace and a name in it.
pub(crate) struct Place<'a> {
    workspace: &'a Workspace,
    path: &'a WorkspacePath,
    directory: Dir,
    name: OsString,
}

impl<'a> Place<'a> {
    /// The place, with missing directories made.
    pub(crate) fn find_or_make(workspace: &'a Workspace, path: &'a WorkspacePath) -> Result<Self, ToolError> {
        let refuse = |error| workspace.refuse(path, error);
        workspace.guard(path)?;
        let (name, parent) = split(path)?;
        let mut directory = workspace.dir().try_clone().map_err(refuse)?;
        for part in names(&parent) {
            directory = match directory.open_dir_nofollow(part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    directory.create_dir(part).map_err(refuse)?;
                    let inherited = Attributes::inherited(&directory).map_err(refuse)?;
                    inherited.give_to_directory(&directory, part).map_err(refuse)?;
                    sync(&directory).map_err(refuse)?;
                    directory.open_dir_nofollow(part).map_err(refuse)?
                }
                other => other.map_err(refuse)?,
            };
        }
        Ok(Self { workspace, path, directory, name })
    }

    /// The place, or `None` if its directory does not exist (any more). The workspace itself is a name in its own directory, where only its mode can change.
    pub(crate) fn find(workspace: &'a Workspace, path: &'a WorkspacePath) -> Result<Option<Self>, ToolError> {
        let refuse = |error| workspace.refuse(path, error);
        workspace.guard(path)?;
        let mut directory = workspace.dir().try_clone().map_err(refuse)?;
        if path.is_root() {
            return Ok(Some(Self { workspace, path, directory, name: ".".into() }));
        }
        let (name, parent) = split(path)?;
        for part in names(&parent) {
            directory = match directory.open_dir_nofollow(part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                other => other.map_err(refuse)?,
            };
        }
        Ok(Some(Self { workspace, path, directory, name }))
    }

    /// Digest and permission bits of the file that is there; `None` if nothing is. Anything but a regular file of a length that is hashed is refused.
    fn digest_and_mode(&self) -> Result<Option<(Digest, u32)>, ToolError> {
        match self.workspace.open_here(&self.directory, &self.name, self.path) {
            Ok(file) if file.size() > MOST_HASHED => {
                Err(ToolError::FileTooLarge { path: self.path.to_string(), bytes: file.size(), limit: MOST_HASHED })
            }
            Ok(mut file) => Ok(Some((file.digest(&Cancel::never())?, file.mode()))),
            Err(ToolError::PathNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What is there, links not followed; `None` if nothing is.
    pub(crate) fn standing(&self) -> Result<Option<Standing>, ToolError> {
        let metadata = match self.directory.symlink_metadata(&self.name) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.workspace.refuse(self.path, error)),
        };
        let inode = (metadata.dev(), metadata.ino());
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        let kind = metadata.file_type();
        if kind.is_file() {
            let found = self.digest_and_mode()?;
            return Ok(found.map(|(digest, mode)| Standing { kind: EntryKind::File, digest, mode, inode, changed }));
        }
        let (kind, digest) = if kind.is_dir() {
            (EntryKind::Directory, Digest::of(b""))
        } else if kind.is_symlink() {
            (EntryKind::Link, Digest::of(&self.target()?))
        } else {
            (EntryKind::Other, Digest::of(b""))
        };
        Ok(Some(Standing { kind, digest, mode: metadata.mode() & 0o7777, inode, changed }))
    }

    /// Where the link leads that is there.
    pub(crate) fn target(&self) -> Result<Vec<u8>, ToolError> {
        let target = rustix::fs::readlinkat(self.directory.as_fd(), &self.name, Vec::new());
        target.map(CString::into_bytes).map_err(|error| self.workspace.refuse(self.path, error.into()))
    }

    /// Puts a symbolic link there atomically.
    pub(crate) fn put_link(&self, target: &[u8], temporary: &str) -> Result<(), ToolError> {
        self.discard(temporary)?;
        let put = || -> io::Result<()> {
            rustix::fs::symlinkat(OsStr::from_bytes(target), self.directory.as_fd(), temporary)?;
            if rustix::process::geteuid().is_root() {
                let owner = self.directory.dir_metadata()?;
                let (uid, gid) = (Uid::from_raw(owner.uid()), Gid::from_raw(owner.gid()));
                rustix::fs::chownat(
                    self.directory.as_fd(),
                    temporary,
                    Some(uid),
                    Some(gid),
                    AtFlags::SYMLINK_NOFOLLOW,
                )?;
            }
            self.directory.rename(temporary, &self.directory, &self.name)?;
            sync(&self.directory)
        };
        put().map_err(|error| {
            let _ = self.directory.remove_file(temporary);
            self.workspace.refuse(self.path, error)
        })
    }

    /// Makes it another name of the file that is at `other`.
    pub(crate) fn put_name(&self, other: &Place<'_>, temporary: &str) -> Result<(), ToolError> {
        self.discard(temporary)?;
        let put = || -> io::Result<()> {
            let (from, to) = (other.directory.as_fd(), self.directory.as_fd());
            rustix::fs::linkat(from, &other.name, to, temporary, AtFlags::empty())?;
            self.directory.rename(temporary, &self.directory, &self.name)?;
            sync(&self.directory)
        };
        put().map_err(|error| {
            let _ = self.directory.remove_file(temporary);
            self.workspace.refuse(self.path, error)
        })
    }

    /// Makes a directory there, if there is none.
    pub(crate) fn make_directory(&self) -> Result<(), ToolError> {
        let make = || -> io::Result<()> {
            match self.directory.create_dir(&self.name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
                made => made?,
            }
            Attributes::inherited(&self.directory)?.give_to_directory(&self.directory, &self.name)?;
            sync(&self.directory)
        };
        make().map_err(|error| self.workspace.refuse(self.path, error))
    }

    /// Sets the mode of the directory that is there.
    pub(crate) fn set_directory_mode(&self, mode: u32) -> Result<(), ToolError> {
        let set = || -> io::Result<()> {
            // Held by a handle: a program could put a link to somebody's directory in its place between looking and setting. It only stands for a place, so
            // that a directory that nobody may read can be opened, and its mode is set by its name among our own handles.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let held = rustix::fs::openat(self.directory.as_fd(), &self.name, flags, Mode::empty())?;
            Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::from_raw_mode(mode))?)
        };
        set().map_err(|error| self.workspace.refuse(self.path, error))
    }

    /// Removes a directory if nothing is in it. One that somebody uses stays.
    pub(crate) fn remove_directory(&self) -> Result<(), ToolError> {
        match self.directory.remove_dir(&self.name) {
            Err(error) if !matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => {
                Err(self.workspace.refuse(self.path, error))
            }
            _ => Ok(()),
        }
    }

    /// Removes a directory with all that is in it.
    pub(crate) fn remove_tree(&self) -> Result<(), ToolError> {
        if self.path.is_root() {
            return Err(ToolError::PathIsDirectory { path: self.path.to_string() });
        }
        match self.directory.remove_dir_all(&self.name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.workspace.refuse(self.path, error)),
            _ => Ok(()),
        }
    }

    /// What a file that is put there has besides its content and mode: that of the file which is there.
    fn attributes(&self) -> Result<Attributes, ToolError> {
        let found = match self.workspace.open_here(&self.directory, &self.name, self.path) {
            Ok(present) => Attributes::of(&present.file),
            Err(ToolError::PathNotFound { .. } | ToolError::SpecialFile { .. }) => {
                Attributes::inherited(&self.directory)
            }
            Err(error) => return Err(error),
        };
        found.map_err(|error| self.workspace.refuse(self.path, error))
    }

    /// Puts a file there atomically and durably, if what stood there when somebody looked still does: making the new file durable takes long enough for a person to
    /// save theirs.
    pub(crate) fn replace(
        &self,
        bytes: &[u8],
        mode: Option<u32>,
        temporary: &str,
        expected: Option<Standing>,
    ) -> Result<(), ToolError> {
        let attributes = self.attributes()?;
        self.discard(temporary)?;
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            // A fresh file, never a link that somebody left under this name.
            options.write(true).create_new(true).mode(mode.unwrap_or(0o666));
            let mut file = self.directory.open_with(temporary, &options)?;
            file.write_all(bytes)?;
            attributes.give_to(&file)?;
            if let Some(mode) = mode {
                file.set_permissions(Permissions::from_mode(mode))?;
            }
            file.sync_all()
        };
        let refuse = |error| self.workspace.refuse(self.path, error);
        let put = || {
            write().map_err(refuse)?;
            if !self.is_still(expected).map_err(refuse)? {
                return Err(ToolError::EffectConflict { path: self.path.to_string() });
            }
            self.directory
                .rename(temporary, &self.directory, &self.name)
                .and_then(|()| sync(&self.directory))
                .map_err(refuse)
        };
        put().inspect_err(|_| {
            // Best effort: the error that stopped the write is the one to report.
            let _ = self.directory.remove_file(temporary);
        })
    }

    /// Whether nothing changed since somebody looked, by the time of the last status change, which programs cannot set.
    fn is_still(&self, expected: Option<Standing>) -> io::Result<bool> {
        match (self.directory.symlink_metadata(&self.name), expected) {
            (Ok(now), Some(expected)) => {
                let is_same_file = (now.dev(), now.ino()) == expected.inode;
                Ok(is_same_file && (now.ctime(), now.ctime_nsec()) == expected.changed)
            }
            (Ok(_), None) => Ok(false),
            (Err(error), expected) if error.kind() == io::ErrorKind::NotFound => Ok(expected.is_none()),
            (Err(error), _) => Err(error),
        }
    }

    /// Removes the file durably.
    pub(crate) fn remove(&self) -> Result<(), ToolError> {
        let removed = self.directory.remove_file(&self.name).and_then(|()| sync(&self.directory));
        removed.map_err(|error| self.workspace.refuse(self.path, error))
    }

    /// Removes a left-over of an attempt that died.
    pub(crate) fn discard(&self, temporary: &str) -> Result<(), ToolError> {
        match self.directory.remove_file(temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.workspace.refuse(self.path, error)),
            _ => Ok(()),
        }
    }
}

fn split(path: &WorkspacePath) -> Result<(OsString, WorkspacePath), ToolError> {
    match (path.file_name(), path.parent()) {
        (Some(name), Some(parent)) => Ok((name.to_owned(), parent)),
        _ => Err(ToolError::PathIsDirectory { path: path.to_string() }),
    }
}

fn names(path: &WorkspacePath) -> impl Iterator<Item = &OsStr> {
    path.as_path().components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}

/// Makes the names in a directory durable. Its handle only stands for a place (`O_PATH`), so it is opened for this.
fn sync(directory: &Dir) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory.as_fd(), ".", flags, Mode::empty())?;
    Ok(rustix::fs::fsync(opened)?)
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod place_tests;
