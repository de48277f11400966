//! A workspace's files as the rule sees them, and whether a program that may read all of them reads anything of others.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, MetadataExt as _};

use super::facts::{self, Origins, REPOSITORY_MARKS, Stamp};
use super::{Facts, Repository, ThirdParty, TrustedTrees, judge};
use crate::{Workspace, WorkspacePath};

/// Workspaces that are remembered.
const MAX_REMEMBERED: usize = 64;
/// Directories and files that are looked at in one workspace; of more, nobody knows.
const MAX_ENTRIES: usize = 2_000_000;

/// What is known about the files of all workspaces, for as long as the process lives.
#[derive(Debug, Default)]
pub struct TreeBook {
    trusted: Arc<TrustedTrees>,
    known: Mutex<HashMap<PathBuf, Arc<Known>>>,
}

impl TreeBook {
    /// Nothing is known yet but what the operator says.
    #[must_use]
    pub fn new(trusted: TrustedTrees) -> Self {
        Self { trusted: Arc::new(trusted), known: Mutex::default() }
    }

    /// Which of some directories, that are no workspaces, holds what others wrote.
    #[must_use]
    pub fn foreign_among(&self, directories: &[PathBuf]) -> Option<PathBuf> {
        let is_foreign = |directory: &&PathBuf| {
            let Ok(real) = directory.canonicalize() else { return false };
            let facts = Facts { root: &real, directory: &real, is_ours: true, is_marked: false, repositories: &[] };
            judge(&facts, &self.trusted).is_some()
        };
        directories.iter().find(is_foreign).cloned()
    }

    pub(crate) fn tree(&self, root: &Path) -> Tree {
        let mut known = lock(&self.known);
        // Whatever is forgotten is looked up again.
        if known.len() >= MAX_REMEMBERED && !known.contains_key(root) {
            known.clear();
        }
        Tree { trusted: Arc::clone(&self.trusted), known: Arc::clone(known.entry(root.to_owned()).or_default()) }
    }
}

/// What is known about the files of one workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    trusted: Arc<TrustedTrees>,
    known: Arc<Known>,
}

#[derive(Debug, Default)]
struct Known {
    origins: Origins,
    directories: Mutex<HashMap<WorkspacePathKey, Arc<Listed>>>,
}

type WorkspacePathKey = PathBuf;

/// What a directory holds that matters.
#[derive(Debug, Default)]
struct Listed {
    stamp: Option<Stamp>,
    is_repository: bool,
    subdirectories: Vec<OsString>,
    /// Files that belong to others or were downloaded.
    suspects: Vec<OsString>,
    entries: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in it is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workspace {
    /// The same workspace with what is remembered about its files, and what the operator says about them.
    #[must_use]
    pub fn with_trees(mut self, trees: &TreeBook) -> Self {
        self.tree = trees.tree(self.root());
        self
    }

    /// Why the whole workspace is taken for somebody else's, if it is.
    #[must_use]
    pub fn foreign_root(&self) -> Option<ThirdParty> {
        self.whose_directory(&WorkspacePath::root())
    }

    /// Why what lies in a directory is taken for somebody else's, if it is; the path has to be free of links.
    pub(crate) fn whose_directory(&self, directory: &WorkspacePath) -> Option<ThirdParty> {
        self.whose(directory, true, false)
    }

    /// The same for a file in a directory.
    pub(crate) fn whose(&self, directory: &WorkspacePath, is_ours: bool, is_marked: bool) -> Option<ThirdParty> {
        let mut repositories: Vec<Repository> = self.enclosing().into_iter().collect();
        let mut above = Some(directory.clone());
        while let Some(directory) = above.filter(|directory| !directory.is_root()) {
            if self.holds_repository(&directory) {
                repositories.push(self.nested(&directory));
            }
            above = directory.parent();
        }
        self.judged(directory, is_ours, is_marked, &repositories)
    }

    /// What a program may read in the workspace that somebody else wrote; blocks.
    #[must_use]
    pub fn foreign_within(&self) -> Option<ThirdParty> {
        if let Some(found) = self.foreign_root() {
            return Some(found);
        }
        let mut ahead = VecDeque::from([WorkspacePath::root()]);
        let mut entries = 0_usize;
        while let Some(directory) = ahead.pop_front() {
            // A directory that is gone, or that cannot be read, cannot be read by a program of the same user either.
            let Some(listed) = self.listed(&directory) else { continue };
            entries = entries.saturating_add(listed.entries);
            if entries > MAX_ENTRIES {
                return Some(ThirdParty::Unknown);
            }
            if listed.is_repository && !directory.is_root() {
                let found = self.judged(&directory, true, false, &[self.nested(&directory)]);
                if found.is_some() {
                    return found;
                }
            }
            for name in &listed.suspects {
                let path = directory.join(name);
                if self.is_endorsed_at(&path) {
                    continue;
                }
                let is_marked = facts::is_path_marked(&self.root().join(path.as_path()));
                let found = self.judged(&directory, is_marked, is_marked, &[]);
                if found.is_some() {
                    return found;
                }
            }
            for name in &listed.subdirectories {
                let path = directory.join(name);
                let found = self.judged(&path, true, false, &[]);
                if found.is_some() {
                    return found;
                }
                ahead.push_back(path);
            }
        }
        None
    }

    fn judged(
        &self,
        directory: &WorkspacePath,
        is_ours: bool,
        is_marked: bool,
        repositories: &[Repository],
    ) -> Option<ThirdParty> {
        let absolute = if directory.is_root() { self.root().to_owned() } else { self.root().join(directory.as_path()) };
        let facts = Facts { root: self.root(), directory: &absolute, is_ours, is_marked, repositories };
        judge(&facts, &self.tree.trusted)
    }

    fn enclosing(&self) -> Option<Repository> {
        facts::enclosing(self.root(), &self.tree.known.origins)
    }

    fn nested(&self, directory: &WorkspacePath) -> Repository {
        let directory = self.root().join(directory.as_path());
        let origin = self.tree.known.origins.of(&directory);
        Repository { directory, nested: true, origin }
    }

    fn holds_repository(&self, directory: &WorkspacePath) -> bool {
        let known = lock(&self.tree.known.directories).get(directory.as_path()).cloned();
        match known.filter(|known| known.stamp.is_some() && known.stamp == self.stamp(directory)) {
            Some(known) => known.is_repository,
            None => REPOSITORY_MARKS.iter().any(|mark| {
                let path = directory.join(mark.as_ref());
                match self.dir().symlink_metadata(path.as_path()) {
                    Ok(_) => true,
                    Err(error) => error.kind() != std::io::ErrorKind::NotFound,
                }
            }),
        }
    }

    fn stamp(&self, directory: &WorkspacePath) -> Option<Stamp> {
        let metadata = self.dir().symlink_metadata(directory.as_path()).ok()?;
        Stamp::settled(metadata.ino(), (metadata.ctime(), metadata.ctime_nsec()), metadata.len())
    }

    fn listed(&self, directory: &WorkspacePath) -> Option<Arc<Listed>> {
        let stamp = self.stamp(directory);
        let known = lock(&self.tree.known.directories).get(directory.as_path()).cloned();
        if let Some(known) = known.filter(|known| known.stamp.is_some() && known.stamp == stamp) {
            return Some(known);
        }
        let opened = match (directory.parent(), directory.file_name()) {
            (Some(parent), Some(name)) => {
                self.dir().open_dir(parent.as_path()).and_then(|parent| parent.open_dir_nofollow(name))
            }
            _ => self.dir().try_clone(),
        };
        let listed = Arc::new(Listed { stamp, ..self.list(directory, &opened.ok()?)? });
        lock(&self.tree.known.directories).insert(directory.as_path().to_owned(), Arc::clone(&listed));
        Some(listed)
    }

    fn list(&self, directory: &WorkspacePath, opened: &Dir) -> Option<Listed> {
        let mut listed = Listed::default();
        for entry in opened.entries().ok()?.flatten() {
            listed.entries += 1;
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            if REPOSITORY_MARKS.iter().any(|mark| name == *mark) {
                listed.is_repository = true;
            } else if kind.is_dir() {
                listed.subdirectories.push(name);
            } else if kind.is_file() {
                let is_ours = entry.metadata().is_ok_and(|metadata| self.is_ours(metadata.uid()));
                let path = self.root().join(directory.as_path()).join(&name);
                if !is_ours || facts::is_path_marked(&path) {
                    listed.suspects.push(name);
                }
            }
        }
        Some(listed)
    }
}
