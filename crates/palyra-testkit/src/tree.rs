//! Pictures of a directory: what is in it, byte for byte, so that "nothing half-done" can be checked.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use palyra_common::Digest;

/// Content above this size is not read: a sparse gigabyte is compared by its size and time of change.
const READ_AT_MOST: u64 = 16 << 20;

/// One thing in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file: permission bits and content.
    File(u32, Digest),
    /// A file that is too large to read: size and time of last change.
    Large(u64, i64),
    /// A directory.
    Directory(u32),
    /// A symbolic link.
    Link(PathBuf),
    /// Anything else.
    Other,
}

/// Everything in a directory, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree(pub BTreeMap<OsString, Entry>);

impl Tree {
    /// Reads a directory.
    ///
    /// # Errors
    /// When something in it cannot be read.
    pub fn of(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.add(root, root)?;
        Ok(tree)
    }

    fn add(&mut self, root: &Path, directory: &Path) -> Result<()> {
        for entry in fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))? {
            let path = entry?.path();
            let metadata = path.symlink_metadata()?;
            let mode = metadata.permissions().mode() & 0o7777;
            let found = if metadata.is_symlink() {
                Entry::Link(fs::read_link(&path)?)
            } else if metadata.is_dir() {
                self.add(root, &path)?;
                Entry::Directory(mode)
            } else if metadata.is_file() && metadata.len() > READ_AT_MOST {
                Entry::Large(metadata.len(), metadata.mtime())
            } else if metadata.is_file() {
                Entry::File(mode, Digest::of(&fs::read(&path)?))
            } else {
                Entry::Other
            };
            self.0.insert(path.strip_prefix(root)?.as_os_str().to_owned(), found);
        }
        Ok(())
    }

    /// The names, as far as they are text.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.keys().map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned()).collect()
    }
}

/// Copies a directory with its permissions; sockets and the like are left out.
///
/// # Errors
/// When something cannot be read or written.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&source, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target).with_context(|| format!("copying {}", source.display()))?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        }
    }
    Ok(())
}
