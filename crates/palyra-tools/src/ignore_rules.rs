//! Which files of a workspace a walk passes over: `.gitignore`, `.ignore` and `.git/info/exclude`.
//!
//! Patterns are read and matched by the `ignore` crate (ripgrep's), with ripgrep's precedence: the deepest file that says
//! anything wins; `.ignore` wins over `.gitignore`; a nested repository does not inherit. Rules from above the workspace or
//! from the user's global settings do not count, so a workspace looks the same on every machine. The files are read through
//! the directory's handle and only if they are regular.

use std::ffi::OsStr;
use std::sync::Arc;

use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::{Workspace, WorkspacePath};

/// An ignore file beyond this size is not looked at: nobody writes one by hand.
const MAX_BYTES: u64 = 1 << 20;

/// The rules of one directory, on top of those of its parents.
pub(crate) struct IgnoreRules {
    parent: Option<Arc<IgnoreRules>>,
    plain: Option<Gitignore>,
    git: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// Whether this directory begins a repository of its own.
    repository: bool,
}

impl IgnoreRules {
    /// Reads the rules of a directory.
    pub(crate) fn load(workspace: &Workspace, dir: &Dir, path: &WorkspacePath, parent: Option<Arc<Self>>) -> Arc<Self> {
        let read = |dir: &Dir, name: &str| load_file(workspace, dir, name, path);
        let repository = dir.symlink_metadata(".git").is_ok();
        let info = if repository { dir.open_dir(".git/info").ok() } else { None };
        Arc::new(Self {
            plain: read(dir, ".ignore"),
            git: read(dir, ".gitignore"),
            exclude: info.and_then(|info| read(&info, "exclude")),
            repository,
            parent,
        })
    }

    /// Whether something in (or below) this directory is passed over.
    pub(crate) fn excludes(&self, path: &WorkspacePath, is_directory: bool) -> bool {
        let (mut plain, mut git, mut exclude) = (Verdict::Silent, Verdict::Silent, Verdict::Silent);
        let mut in_repository = true;
        let mut level = Some(self);
        while let Some(rules) = level {
            plain = plain.or(rules.plain.as_ref(), path, is_directory);
            if in_repository {
                git = git.or(rules.git.as_ref(), path, is_directory);
                exclude = exclude.or(rules.exclude.as_ref(), path, is_directory);
            }
            in_repository &= !rules.repository;
            level = rules.parent.as_deref();
        }
        let spoken = [plain, git, exclude].into_iter().find(|verdict| *verdict != Verdict::Silent);
        spoken == Some(Verdict::Exclude)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Silent,
    Exclude,
    Include,
}

impl Verdict {
    /// The verdict of a file further up, unless one has spoken already.
    fn or(self, rules: Option<&Gitignore>, path: &WorkspacePath, is_directory: bool) -> Self {
        let (Self::Silent, Some(rules)) = (self, rules) else { return self };
        match rules.matched(path.as_path(), is_directory) {
            Match::None => Self::Silent,
            Match::Ignore(_) => Self::Exclude,
            Match::Whitelist(_) => Self::Include,
        }
    }
}

fn load_file(workspace: &Workspace, dir: &Dir, name: &str, base: &WorkspacePath) -> Option<Gitignore> {
    let path = base.join(OsStr::new(name));
    let bytes = workspace.open_here(dir, OsStr::new(name), &path).ok()?.read_whole(MAX_BYTES).ok()?;
    let root = if base.is_root() { std::path::Path::new("") } else { base.as_path() };
    let mut builder = GitignoreBuilder::new(root);
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A line that is no pattern is passed over, as git does.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}
