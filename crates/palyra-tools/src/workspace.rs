//! A directory that cannot be left.
//!
//! The workspace is an open directory handle, and every file is reached from that handle with `openat2(RESOLVE_BENEATH)` or its
//! equivalent (`cap-std`): a symbolic link, a `..`, an absolute path, a magic link of `/proc` or a directory that is swapped
//! while we look cannot lead out of it, because no step is ever taken from an ambient path. `cap-std` was chosen because it
//! does this on kernels without `openat2` too.
//!
//! INVARIANT: devices, sockets and named pipes are never read or written. The kind is asked before opening, opening never
//! blocks (`O_NONBLOCK`), and the kind of what was really opened is asked again.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, FileType, FileTypeExt, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use palyra_common::{Confidentiality, DataOrigin, Digest, Integrity, Label};
use sha2::{Digest as _, Sha256};

use crate::cancel::Cancel;
use crate::file_labels::{FileLabels, nothing_known};
use crate::protected::Protected;
use crate::registry::nearest;
use crate::roots::{Outside, Roots, open_without_links};
use crate::third_party::{Tree, is_marked};
use crate::workspace_path::escape;
use crate::{ToolError, WorkspacePath};

/// How much is read at a time while streaming.
pub(crate) const CHUNK: usize = 64 << 10;

/// An open workspace.
#[derive(Debug)]
pub struct Workspace {
    dir: Dir,
    /// The path without links, for showing and for telling which absolute paths lie inside.
    root: PathBuf,
    /// The path as it was given.
    given: PathBuf,
    /// Who owns the workspace directory.
    owner: u32,
    protected: Protected,
    /// What is known about its files.
    pub(crate) labels: Arc<dyn FileLabels>,
    /// What tells somebody else's files from the user's.
    pub(crate) tree: Tree,
}

impl Workspace {
    /// Opens a directory as workspace, if it lies where the caller's workspaces may lie; blocks. Some files and directories do not exist in it for tools,
    /// wherever they are, and a workspace inside of one of them is refused.
    ///
    /// # Errors
    /// When it cannot be opened or may not be. Whoever has granted roots only is told the same for both.
    pub fn open(path: impl AsRef<Path>, roots: &Roots, protected: &[PathBuf]) -> Result<Self, ToolError> {
        let given = path.as_ref();
        Self::open_at(given, roots, protected).map_err(|error| match error {
            // The daemon's own want of handles says nothing about the directory.
            error @ ToolError::OutOfFiles { .. } => error,
            error if roots.may_be_told() => error,
            _ => ToolError::WorkspaceNotGranted { path: escape(given.as_os_str()) },
        })
    }

    fn open_at(given: &Path, roots: &Roots, protected: &[PathBuf]) -> Result<Self, ToolError> {
        let fail = |reason: String| ToolError::WorkspaceNotFound { path: escape(given.as_os_str()), reason };
        // Only what is true of the directory is a reason to call it missing; everything else is an error of the system.
        let explain = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => fail("does not exist".to_owned()),
            std::io::ErrorKind::NotADirectory => fail("is not a directory".to_owned()),
            std::io::ErrorKind::PermissionDenied => fail("may not be opened".to_owned()),
            _ => ToolError::io(&escape(given.as_os_str()), error),
        };
        let root = given.canonicalize().map_err(explain)?;
        // The roots are compared with a path that the handle is then reached by, so a link that appears in between leads nowhere.
        roots.admit(&root).map_err(|outside| match outside {
            Outside::NotGranted => ToolError::WorkspaceNotGranted { path: escape(given.as_os_str()) },
            Outside::TooBroad => ToolError::WorkspaceTooBroad { path: escape(given.as_os_str()) },
        })?;
        let dir = Dir::from_std_file(open_without_links(&root).map_err(explain)?);
        let owner = dir.dir_metadata().map_err(explain)?.uid();
        let given = std::path::absolute(given).map_err(explain)?;
        let protected =
            Protected::below(&root, protected).ok_or_else(|| fail("belongs to Palyra itself".to_owned()))?;
        Ok(Self { dir, root, given, owner, protected, labels: nothing_known(), tree: Tree::default() })
    }

    /// Where the workspace is, without links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads a path as a model writes it; an absolute path inside the workspace is made relative, also one that gets there by a link.
    pub fn path(&self, text: &str) -> Result<WorkspacePath, ToolError> {
        match WorkspacePath::parse(text, &[&self.root, &self.given]) {
            Err(ToolError::PathOutsideWorkspace { path }) => {
                let real = real_path(text).ok_or(ToolError::PathOutsideWorkspace { path })?;
                // What is opened is looked up from the workspace's own handle again, so nothing rests on what was seen here.
                WorkspacePath::parse(&escape(real.as_os_str()), &[&self.root])
                    .map_err(|_| ToolError::PathOutsideWorkspace { path: text.to_owned() })
            }
            parsed => parsed,
        }
    }

    /// A file of the workspace under its one name, whichever path, absolute or through links, leads to it; blocks.
    pub fn named(&self, text: &str) -> Result<WorkspacePath, ToolError> {
        let path = self.path(text)?;
        // A path that leads nowhere inside is judged by the name it was given; opening it fails.
        Ok(self.resolve(&path).unwrap_or(path))
    }

    /// Where a directory of the workspace is on the host, without links; blocks.
    pub fn directory(&self, text: &str) -> Result<PathBuf, ToolError> {
        let path = self.path(text)?;
        // Looked up from the handle: what lies outside of the workspace looks the same whether it is there or not.
        let real = self.resolve(&path)?;
        if !self.metadata(&real)?.is_dir() {
            return Err(ToolError::PathNotDirectory { path: path.to_string() });
        }
        Ok(if real.is_root() { self.root.clone() } else { self.root.join(real.as_path()) })
    }

    /// Refuses what is protected. The path has to be free of links; see [`Workspace::resolve`].
    pub(crate) fn guard(&self, path: &WorkspacePath) -> Result<(), ToolError> {
        if self.protected.covers(path.as_path()) {
            return Err(ToolError::PathProtected { path: path.to_string() });
        }
        Ok(())
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// What the system says about a path, as our error; a missing file gets the nearest sibling as a suggestion.
    pub(crate) fn refuse(&self, path: &WorkspacePath, error: std::io::Error) -> ToolError {
        match ToolError::io(&path.to_string(), error) {
            ToolError::PathNotFound { path: shown, .. } => {
                ToolError::PathNotFound { suggestion: self.similar(path), path: shown }
            }
            other => other,
        }
    }

    fn similar(&self, path: &WorkspacePath) -> Option<String> {
        /// Enough to find a misspelt name, small enough not to matter in a huge directory.
        const LOOKED_AT: usize = 1_000;
        let parent = path.parent()?;
        // A suggestion is Palyra's word, and a name in there is not.
        if self.whose_directory(&parent).is_some() {
            return None;
        }
        let wanted = escape(path.file_name()?);
        let entries = self.dir.read_dir(parent.as_path()).ok()?;
        let names: Vec<_> = entries.take(LOOKED_AT).filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        let texts: Vec<_> = names.iter().map(|name| escape(name)).collect();
        let near = nearest(&wanted, texts.iter().map(String::as_str))?;
        let name = names.iter().zip(&texts).find(|(_, text)| **text == near)?.0;
        Some(parent.join(name).to_string())
    }

    /// What is at a path, links followed as long as they stay inside.
    pub(crate) fn metadata(&self, path: &WorkspacePath) -> Result<Metadata, ToolError> {
        self.dir.metadata(path.as_path()).map_err(|error| self.refuse(path, error))
    }

    /// Opens a regular file for reading, links followed as long as they stay inside.
    pub(crate) fn open_file(&self, path: &WorkspacePath) -> Result<OpenFile, ToolError> {
        if !self.protected.is_empty() {
            self.resolve(path)?;
        }
        require_regular(path, &self.metadata(path)?)?;
        self.open_in(&self.dir, path.as_path(), path, FollowSymlinks::Yes)
    }

    /// Opens a name in a directory of the workspace, if it is a regular file and no link.
    pub(crate) fn open_here(&self, dir: &Dir, name: &OsStr, path: &WorkspacePath) -> Result<OpenFile, ToolError> {
        self.guard(path)?;
        let metadata = dir.symlink_metadata(name).map_err(|error| self.refuse(path, error))?;
        require_regular(path, &metadata)?;
        self.open_in(dir, Path::new(name), path, FollowSymlinks::No)
    }

    fn open_in(
        &self,
        dir: &Dir,
        name: &Path,
        path: &WorkspacePath,
        follow: FollowSymlinks,
    ) -> Result<OpenFile, ToolError> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(nonblocking()).follow(follow);
        let file = dir.open_with(name, &options).map_err(|error| self.refuse(path, error))?;
        let metadata = file.metadata().map_err(|error| self.refuse(path, error))?;
        require_regular(path, &metadata)?;
        Ok(OpenFile { path: path.clone(), links: follow, metadata, file: file.into_std() })
    }

    /// The path with all links resolved and nothing protected, so that a file is changed where it really is. What does not exist yet is taken below
    /// the nearest directory that does.
    pub(crate) fn resolve(&self, path: &WorkspacePath) -> Result<WorkspacePath, ToolError> {
        let mut missing = Vec::new();
        let mut here = path.clone();
        loop {
            match self.dir.canonicalize(here.as_path()) {
                Ok(found) => {
                    let found = if found == Path::new(".") { PathBuf::new() } else { found };
                    let resolved = missing
                        .iter()
                        .rev()
                        .fold(WorkspacePath::found(&found), |path, name: &OsString| path.join(name));
                    self.guard(&resolved)?;
                    return Ok(resolved);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    // A link that points to nothing is refused: writing "through" it would make a file somewhere else.
                    if self.dir.symlink_metadata(here.as_path()).is_ok_and(|found| found.is_symlink()) {
                        return Err(ToolError::InvalidPath {
                            path: path.to_string(),
                            reason: "it is a symbolic link that leads nowhere",
                        });
                    }
                    let (Some(parent), Some(name)) = (here.parent(), here.file_name()) else {
                        return Err(self.refuse(path, error));
                    };
                    missing.push(name.to_owned());
                    here = parent;
                }
                Err(error) => return Err(self.refuse(path, error)),
            }
        }
    }

    /// Whether a user is this one, root, or the owner of the workspace.
    pub(crate) fn is_ours(&self, owner: u32) -> bool {
        [rustix::process::geteuid().as_raw(), self.owner, 0].contains(&owner)
    }

    /// How far an open file may be trusted by the facts about where it lies and whose it is; see [`crate::third_party`]. What runs wrote, and what people endorsed,
    /// has to be asked for as well; see [`Workspace::examine`].
    pub(crate) fn label(&self, path: &WorkspacePath, open: &OpenFile) -> Label {
        // Links lead to where a file really is. One that is gone meanwhile is judged by the name it had.
        let real = match open.links {
            FollowSymlinks::Yes => self.resolve(path).unwrap_or_else(|_| path.clone()),
            FollowSymlinks::No => path.clone(),
        };
        let directory = real.parent().unwrap_or_else(WorkspacePath::root);
        let whose = self.whose(&directory, self.is_ours(open.owner()), is_marked(&open.file));
        let integrity = if whose.is_none() { Integrity::ToolTrusted } else { Integrity::Untrusted };
        Label::new(integrity, Confidentiality::Private)
            .of_origin(DataOrigin::Workspace)
            .from_source(format!("file:{path}"))
    }
}

/// A regular file that was opened for reading.
pub(crate) struct OpenFile {
    path: WorkspacePath,
    /// Whether links may have led to it. What a walk finds lies where its path says.
    links: FollowSymlinks,
    pub(crate) metadata: Metadata,
    pub(crate) file: File,
}

impl OpenFile {
    pub(crate) fn size(&self) -> u64 {
        self.metadata.len()
    }

    pub(crate) fn owner(&self) -> u32 {
        self.metadata.uid()
    }

    /// Permission bits, without set-user-id and its like: those never survive a write.
    pub(crate) fn mode(&self) -> u32 {
        self.metadata.mode() & 0o777
    }

    /// All bytes, or `file_too_large`.
    pub(crate) fn read_whole(mut self, limit: u64) -> Result<Vec<u8>, ToolError> {
        let too_large = |bytes| ToolError::FileTooLarge { path: self.path.to_string(), bytes, limit };
        if self.size() > limit {
            return Err(too_large(self.size()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.size()).unwrap_or_default());
        let read = (&mut self.file).take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| ToolError::io(&self.path.to_string(), error))?;
        // The file may have grown since its size was asked.
        if bytes.len() as u64 > limit { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
    }

    /// Digest of the whole content, streamed.
    pub(crate) fn digest(&mut self, cancel: &Cancel) -> Result<Digest, ToolError> {
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; CHUNK];
        loop {
            cancel.check()?;
            let count = self.file.read(&mut buffer).map_err(|error| ToolError::io(&self.path.to_string(), error))?;
            match buffer.get(..count) {
                Some([]) | None => return Ok(Digest(hasher.finalize().into())),
                Some(bytes) => hasher.update(bytes),
            }
        }
    }
}

fn nonblocking() -> i32 {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    i32::try_from(flags.bits()).unwrap_or_default()
}

/// An absolute path without links: as much of it as exists, and the rest as it is written.
fn real_path(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    // `..` behind a link leads elsewhere than it seems to.
    if !path.is_absolute() || path.components().any(|part| part == std::path::Component::ParentDir) {
        return None;
    }
    path.ancestors().find_map(|here| {
        let real = here.canonicalize().ok()?;
        Some(real.join(path.strip_prefix(here).ok()?))
    })
}

pub(crate) fn require_regular(path: &WorkspacePath, metadata: &Metadata) -> Result<(), ToolError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let path = path.to_string();
    if kind.is_dir() {
        return Err(ToolError::PathIsDirectory { path });
    }
    Err(ToolError::SpecialFile { path, kind: kind_name(kind) })
}

/// What a directory entry is, in a word.
pub(crate) fn kind_name(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "directory"
    } else if kind.is_file() {
        "file"
    } else if kind.is_symlink() {
        "symbolic link"
    } else if kind.is_fifo() {
        "named pipe"
    } else if kind.is_socket() {
        "socket"
    } else {
        "device"
    }
}
