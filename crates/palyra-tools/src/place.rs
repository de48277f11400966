//! One file's place in the workspace: its directory, held open, and its name.
//!
//! The directory is walked to from the workspace's handle without following any link, so what is read, replaced and removed is
//! in the same directory, even if the path is swapped meanwhile. A replacement is written beside the file, made durable, and
//! renamed over it; the directory is made durable after. What else the file had (see `attributes`) it keeps.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::Component;

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use palyra_common::Digest;
use rustix::fs::{Mode, OFlags};

use crate::attributes::Attributes;
use crate::cancel::Cancel;
use crate::{ToolError, Workspace, WorkspacePath};

/// Files above this are not hashed: none of those that are written or taken back here is as long, and a program can make one of any length for nothing.
const MOST_HASHED: u64 = 4 << 30;

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

    /// The place, or `None` if its directory does not exist (any more).
    pub(crate) fn find(workspace: &'a Workspace, path: &'a WorkspacePath) -> Result<Option<Self>, ToolError> {
        let refuse = |error| workspace.refuse(path, error);
        workspace.guard(path)?;
        let (name, parent) = split(path)?;
        let mut directory = workspace.dir().try_clone().map_err(refuse)?;
        for part in names(&parent) {
            directory = match directory.open_dir_nofollow(part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                other => other.map_err(refuse)?,
            };
        }
        Ok(Some(Self { workspace, path, directory, name }))
    }

    /// Digest of what is there; `None` if nothing is. Anything but a regular file of a length that is hashed is refused.
    pub(crate) fn digest(&self) -> Result<Option<Digest>, ToolError> {
        Ok(self.digest_and_mode()?.map(|(digest, _)| digest))
    }

    /// The same with the permission bits.
    pub(crate) fn digest_and_mode(&self) -> Result<Option<(Digest, u32)>, ToolError> {
        match self.workspace.open_here(&self.directory, &self.name, self.path) {
            Ok(file) if file.size() > MOST_HASHED => {
                Err(ToolError::FileTooLarge { path: self.path.to_string(), bytes: file.size(), limit: MOST_HASHED })
            }
            Ok(mut file) => Ok(Some((file.digest(&Cancel::never())?, file.mode()))),
            Err(ToolError::PathNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What a file that is put there has besides its content and mode: that of the file which is there.
    fn attributes(&self) -> Result<Attributes, ToolError> {
        let found = match self.workspace.open_here(&self.directory, &self.name, self.path) {
            Ok(present) => Attributes::of(&present.file),
            Err(ToolError::PathNotFound { .. }) => Attributes::inherited(&self.directory),
            Err(error) => return Err(error),
        };
        found.map_err(|error| self.workspace.refuse(self.path, error))
    }

    /// Puts a file there atomically and durably.
    pub(crate) fn replace(&self, bytes: &[u8], mode: Option<u32>, temporary: &str) -> Result<(), ToolError> {
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
            file.sync_all()?;
            self.directory.rename(temporary, &self.directory, &self.name)?;
            sync(&self.directory)
        };
        write().map_err(|error| {
            // Best effort: the error that stopped the write is the one to report.
            let _ = self.directory.remove_file(temporary);
            self.workspace.refuse(self.path, error)
        })
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
