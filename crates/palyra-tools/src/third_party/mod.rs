//! Whether a file of a workspace is somebody else's, decided from facts and by nothing else.
//!
//! What others wrote and what lies on this machine all the same (dependencies, clones, downloads) is untrusted by rule, until the operator says otherwise or a person
//! endorses the content. [`judge`] is the whole rule: it does no I/O, and its facts come from `facts.rs`. A fact that cannot be established counts against the file.
//!
//! INVARIANT: nothing here makes a file *more* trusted than it is. Names only ever count against a file; what counts for it comes from the operator's configuration.

mod dependencies;
mod facts;
mod git_config;
mod remote;
mod tree;
mod trusted;

use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use self::facts::{Facts, is_marked};
pub use self::remote::Remote;
pub(crate) use self::tree::Tree;
pub use self::tree::TreeBook;
pub use self::trusted::{TrustedTrees, TrustedTreesError};

/// Why a file is taken for somebody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThirdParty {
    /// It belongs to another user of this machine.
    OtherUser,
    /// It was downloaded.
    Download,
    /// It lies in a directory that a package manager fills.
    Dependency(PathBuf),
    /// It lies in a repository inside of the workspace, or in a submodule.
    NestedRepository(PathBuf),
    /// The workspace is a clone of a repository that the operator has not named.
    Clone {
        /// The working tree.
        directory: PathBuf,
        /// What it is a clone of, as far as that can be told.
        remote: Option<Remote>,
    },
    /// Whose it is cannot be told.
    Unknown,
}

impl fmt::Display for ThirdParty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherUser => f.write_str("belongs to another user"),
            Self::Download => f.write_str("was downloaded"),
            Self::Dependency(directory) => write!(f, "lies in the dependency directory `{}`", shown(directory)),
            Self::NestedRepository(directory) => write!(f, "lies in the repository `{}`", shown(directory)),
            Self::Clone { remote: Some(remote), .. } => write!(f, "lies in a clone of `{remote}`"),
            Self::Clone { remote: None, .. } => f.write_str("lies in a clone"),
            Self::Unknown => f.write_str("is of unknown origin"),
        }
    }
}

fn shown(path: &Path) -> String {
    crate::workspace_path::escape(path.as_os_str())
}

/// A repository that a file lies in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Its working tree, absolute.
    pub(crate) directory: PathBuf,
    /// Whether it lies below the root of the workspace. Otherwise the workspace lies in it.
    pub(crate) nested: bool,
    pub(crate) origin: RepositoryOrigin,
}

/// Where a repository came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RepositoryOrigin {
    /// It has no remote: it was begun here.
    Local,
    /// It knows these remotes.
    Remotes(Vec<Remote>),
    /// That cannot be told.
    Unknown,
}

/// The rule.
pub(crate) fn judge(facts: &Facts<'_>, trusted: &TrustedTrees) -> Option<ThirdParty> {
    let Facts { root, directory: place, is_ours, is_marked, repositories } = facts;
    if !is_ours {
        return Some(ThirdParty::OtherUser);
    }
    if *is_marked {
        return Some(ThirdParty::Download);
    }
    if let Some(directory) = dependencies::directory_of(root, place)
        // Whoever names a directory that holds dependencies does not speak for them, only who names one of them.
        && !trusted.names_within(&directory, place)
    {
        return Some(ThirdParty::Dependency(directory));
    }
    repositories.iter().find_map(|repository| judge_repository(repository, place, trusted))
}

fn judge_repository(repository: &Repository, place: &Path, trusted: &TrustedTrees) -> Option<ThirdParty> {
    let Repository { directory, nested, origin } = repository;
    if trusted.covers(place) {
        return None;
    }
    let unnamed = match origin {
        RepositoryOrigin::Local if *nested => None,
        RepositoryOrigin::Local => return None,
        RepositoryOrigin::Remotes(remotes) => match remotes.iter().find(|remote| !trusted.names(remote)) {
            Some(remote) => Some(remote.clone()),
            None => return None,
        },
        RepositoryOrigin::Unknown => None,
    };
    Some(if *nested {
        ThirdParty::NestedRepository(directory.clone())
    } else {
        ThirdParty::Clone { directory: directory.clone(), remote: unnamed }
    })
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
