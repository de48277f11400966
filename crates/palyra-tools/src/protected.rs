//! What tools may not touch even inside a workspace: Palyra's own state and configuration.
//!
//! A person may well work in a directory that contains them, their home for example. Whoever could read the journal's key or the local token, or write the
//! configuration, would be the operator; so for tools these places are not there.

use std::path::{Path, PathBuf};

/// Protected files and directories of one workspace, relative to its root and without links.
#[derive(Debug, Default)]
pub(crate) struct Protected(Vec<PathBuf>);

impl Protected {
    /// The part of `places` that lies below `root`; `None` if the root itself lies in one of them.
    pub(crate) fn below(root: &Path, places: &[PathBuf]) -> Option<Self> {
        let mut inside = Vec::new();
        for place in places {
            let place = real(place);
            if root.starts_with(&place) {
                return None;
            }
            if let Ok(relative) = place.strip_prefix(root) {
                inside.push(relative.to_owned());
            }
        }
        Some(Self(inside))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a link-free path is, or lies in, a protected place.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.0.iter().any(|place| path.starts_with(place))
    }
}

/// The place without links, also when its last parts do not exist yet.
fn real(place: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut here = place;
    loop {
        if let Ok(found) = here.canonicalize() {
            return missing.iter().rev().fold(found, |path, name| path.join(name));
        }
        match (here.parent(), here.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                here = parent;
            }
            _ => return place.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_below_the_root_are_covered_and_a_root_inside_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("home/state")).unwrap();
        std::os::unix::fs::symlink(root.join("home/state"), root.join("link")).unwrap();
        let places = [root.join("link"), root.join("home/conf/new/palyra.toml"), PathBuf::from("/elsewhere")];
        let protected = Protected::below(&root.join("home"), &places).unwrap();
        assert!(protected.covers(Path::new("state")) && protected.covers(Path::new("state/keys/journal.key")));
        assert!(protected.covers(Path::new("conf/new/palyra.toml")));
        assert!(!protected.covers(Path::new("statement")) && !protected.covers(Path::new("conf/new")));
        assert!(Protected::below(&root.join("home/state"), &places).is_none());
    }
}
