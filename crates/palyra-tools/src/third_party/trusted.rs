//! What the operator says is theirs: `workspaces.trusted`.

use std::path::{Path, PathBuf};

use super::remote::Remote;

/// Directories and remotes whose files are as good as the user's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedTrees {
    directories: Vec<PathBuf>,
    remotes: Vec<Remote>,
}

/// An entry that is neither a directory nor a remote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an absolute directory nor a remote such as `github.com/me`")]
pub struct TrustedTreesError(pub String);

impl TrustedTrees {
    /// Reads the entries. Directories are looked up, so that links do not matter; `~/` is the home directory.
    ///
    /// # Errors
    /// For the first entry that is neither a directory nor a remote.
    pub fn read(entries: &[String], home: Option<&Path>) -> Result<Self, TrustedTreesError> {
        let mut read = Self::default();
        for entry in entries.iter().map(|entry| entry.trim()) {
            let directory = match (entry.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => Some(home.join(rest)),
                (None, _) if entry.starts_with('/') => Some(PathBuf::from(entry)),
                _ => None,
            };
            if let Some(directory) = directory {
                let is_everything = directory.parent().is_none();
                let climbs = directory.components().any(|part| part == std::path::Component::ParentDir);
                if is_everything || climbs {
                    return Err(TrustedTreesError(entry.to_owned()));
                }
                read.directories.push(directory.canonicalize().unwrap_or(directory));
            } else {
                let remote = Remote::of_operator(entry).ok_or_else(|| TrustedTreesError(entry.to_owned()))?;
                read.remotes.push(remote);
            }
        }
        Ok(read)
    }

    /// Whether a directory that the operator named holds a path.
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.directories.iter().any(|directory| path.starts_with(directory))
    }

    /// Whether a directory that the operator named holds a path and lies itself in another directory, or is it.
    pub(super) fn names_within(&self, directory: &Path, path: &Path) -> bool {
        self.directories.iter().any(|named| named.starts_with(directory) && path.starts_with(named))
    }

    /// Whether the operator named a remote, or one that it lies below.
    pub(super) fn names(&self, remote: &Remote) -> bool {
        match remote {
            Remote::Directory(directory) => self.covers(directory),
            Remote::Host { .. } => self.remotes.iter().any(|named| named.covers(remote)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_directory_or_a_remote() {
        let read = |entry: &str| TrustedTrees::read(&[entry.to_owned()], Some(Path::new("/home/ada")));
        assert_eq!(read("~/src").unwrap().directories, [Path::new("/home/ada/src")]);
        assert_eq!(read(" /srv/nowhere ").unwrap().directories, [Path::new("/srv/nowhere")]);
        assert!(read("github.com/me").unwrap().names(&Remote::of_git("git@github.com:me/x")));
        for bad in ["", "/", "src", "me", "~", "/srv/../home"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
