//! Taking back what a run did to git's own data, without taking anything from whoever used git since.
//!
//! Objects are named by their content, so whoever commits after the run may use those that it made without writing them again. They are removed only if nobody has used the repository
//! since. The index is rewritten by mere looking (`git status`), so one that is not as the run left it is somebody else's and stays.

use std::collections::BTreeSet;

use crate::cancel::Cancel;
use crate::place::Place;
use crate::walk::{Flow, Found, Include, Walk};
use crate::{FileChange, ToolError, Workspace, WorkspacePath};
use cap_std::fs::MetadataExt as _;
use std::sync::{Mutex, PoisonError};

/// Repositories that were used since the run, by their git directories.
pub(crate) struct Repositories(BTreeSet<String>);

/// A moment, as file systems keep it.
type Moment = (i64, i64);

/// What names objects.
const NAMING: [&str; 6] = ["HEAD", "packed-refs", "index", "refs", "logs", "worktrees"];

impl Repositories {
    /// Looks at the repositories in which the run left something.
    pub(crate) fn look<'a>(
        workspace: &Workspace,
        left: impl Iterator<Item = (&'a str, &'a FileChange)>,
    ) -> Result<Self, ToolError> {
        let mut newest: std::collections::BTreeMap<String, Moment> = std::collections::BTreeMap::new();
        for (path, change) in left {
            let Some((git, _)) = split(path) else { continue };
            let newest = newest.entry(git.to_owned()).or_default();
            let path = workspace.path(path)?;
            let standing = match Place::find(workspace, &path) {
                Ok(Some(place)) => place.standing().ok().flatten(),
                Ok(None) | Err(_) => None,
            };
            if let Some(standing) = standing.filter(|standing| standing.is(change.entry.after, change.after)) {
                *newest = (*newest).max(standing.changed);
            }
        }
        let mut used = BTreeSet::new();
        for (git, newest) in newest {
            if is_used_since(workspace, &git, newest)? {
                used.insert(git);
            }
        }
        Ok(Self(used))
    }
}

/// Whether undo leaves a file of git's own data as it is, and says nothing.
pub(crate) fn leaves_alone(path: &str, made: bool, as_left: bool, repositories: &Repositories) -> bool {
    let Some((git, inside)) = split(path) else { return false };
    match inside.split('/').next() {
        Some("index") => inside == "index" && !as_left,
        Some("objects") => made && repositories.0.contains(git),
        _ => false,
    }
}

/// The git directory that a path lies in, and the path in it.
fn split(path: &str) -> Option<(&str, &str)> {
    let end = match path.strip_prefix(".git/") {
        Some(_) => ".git".len(),
        None => path.find("/.git/")? + "/.git".len(),
    };
    Some((path.get(..end)?, path.get(end + 1..)?))
}

/// Whether anything that names objects changed after this moment.
fn is_used_since(workspace: &Workspace, git: &str, newest: Moment) -> Result<bool, ToolError> {
    let git = workspace.path(git)?;
    let used = Mutex::new(false);
    for name in NAMING {
        let start = git.join(name.as_ref());
        let Ok(metadata) = workspace.dir().symlink_metadata(start.as_path()) else { continue };
        if !metadata.is_dir() {
            if (metadata.ctime(), metadata.ctime_nsec()) > newest {
                return Ok(true);
            }
            continue;
        }
        let (cancel, enters) = (Cancel::never(), |_: &Found| true);
        let walk = Walk {
            start: WorkspacePath::clone(&start),
            ignored: Include::Yes,
            ..Walk::whole(workspace, &cancel).covering_all(&enters)
        };
        walk.run(|| {
            |found: &Found| {
                let metadata = found.directory.symlink_metadata(&found.name);
                if metadata.is_ok_and(|it| !it.is_dir() && (it.ctime(), it.ctime_nsec()) > newest) {
                    *used.lock().unwrap_or_else(PoisonError::into_inner) = true;
                    return Flow::Stop;
                }
                Flow::Continue
            }
        })?;
    }
    Ok(used.into_inner().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_directories_are_found_in_paths() {
        assert_eq!(split(".git/objects/aa/b"), Some((".git", "objects/aa/b")));
        assert_eq!(split("sub/.git/index"), Some(("sub/.git", "index")));
        assert_eq!((split("src/git/x"), split(".github/x"), split(".git")), (None, None, None));
    }

    #[test]
    fn objects_stay_where_the_repository_was_used_and_a_foreign_index_stays_anywhere() {
        let used = Repositories(BTreeSet::from([".git".to_owned()]));
        let unused = Repositories(BTreeSet::new());
        assert!(leaves_alone(".git/objects/aa/b", true, true, &used));
        assert!(!leaves_alone(".git/objects/aa/b", false, true, &used), "what is gone comes back");
        assert!(!leaves_alone(".git/objects/aa/b", true, true, &unused));
        assert!(leaves_alone(".git/index", false, false, &unused) && !leaves_alone(".git/index", false, true, &used));
        assert!(!leaves_alone(".git/HEAD", false, false, &used) && !leaves_alone("objects/x", true, true, &used));
    }
}
