//! Below which directories a workspace may lie.
//!
//! A [`Workspace`](crate::Workspace) cannot be opened without saying so, and the answer is checked against the directory that was really opened: the path is
//! resolved once, and the handle is then reached from `/` without following a single link. A directory that is replaced by a link in between fails to open.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Where somebody's workspaces may lie. All paths are absolute and free of links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// Anywhere but at one of the `except` directories or above it, unless that was granted by name.
    Anywhere {
        /// Directories that are too much for one workspace, such as a home.
        except: Vec<PathBuf>,
        /// What is allowed all the same, with everything below it.
        granted: Vec<PathBuf>,
    },
    /// At or below one of these; whether anything else exists is not told.
    Below(Vec<PathBuf>),
}

/// Why a directory cannot be a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// It is not below a granted root.
    NotGranted,
    /// It contains too much.
    TooBroad,
}

impl Roots {
    /// Whether a directory without links may be a workspace.
    pub(crate) fn admit(&self, directory: &Path) -> Result<(), Outside> {
        let below = |roots: &[PathBuf]| roots.iter().any(|root| directory.starts_with(root));
        match self {
            Self::Anywhere { granted, .. } if below(granted) => Ok(()),
            Self::Anywhere { except, .. } => match except.iter().any(|broad| broad.starts_with(directory)) {
                true => Err(Outside::TooBroad),
                false => Ok(()),
            },
            Self::Below(roots) if below(roots) => Ok(()),
            Self::Below(_) => Err(Outside::NotGranted),
        }
    }

    /// Whether it may be told why a directory cannot be opened.
    pub(crate) fn may_be_told(&self) -> bool {
        match self {
            Self::Anywhere { .. } => true,
            Self::Below(_) => false,
        }
    }
}

/// Opens a directory by a path without links; fails if there is one after all.
pub(crate) fn open_without_links(path: &Path) -> io::Result<File> {
    let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here: OwnedFd = openat(CWD, "/", through, Mode::empty())?;
    for part in path.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => here = openat(&here, name, through, Mode::empty())?,
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            }
        }
    }
    // What led here needed only to be passed through; the workspace itself is read.
    let read = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(openat(&here, ".", read, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(list: &[&str]) -> Vec<PathBuf> {
        list.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn granted_roots_hold_themselves_and_what_is_below() {
        let roots = Roots::Below(paths(&["/srv/ci"]));
        for good in ["/srv/ci", "/srv/ci/a/b"] {
            assert_eq!(roots.admit(Path::new(good)), Ok(()), "{good}");
        }
        for bad in ["/", "/srv", "/srv/cid", "/srv/c", "/etc"] {
            assert_eq!(roots.admit(Path::new(bad)), Err(Outside::NotGranted), "{bad}");
        }
        assert_eq!(Roots::Below(Vec::new()).admit(Path::new("/srv/ci")), Err(Outside::NotGranted));
    }

    #[test]
    fn what_is_too_broad_has_to_be_granted_by_name() {
        let except = paths(&["/home/ada"]);
        let roots = Roots::Anywhere { except: except.clone(), granted: Vec::new() };
        for bad in ["/", "/home", "/home/ada"] {
            assert_eq!(roots.admit(Path::new(bad)), Err(Outside::TooBroad), "{bad}");
        }
        for good in ["/home/ada/work", "/home/bob", "/srv"] {
            assert_eq!(roots.admit(Path::new(good)), Ok(()), "{good}");
        }
        let granted = Roots::Anywhere { except, granted: paths(&["/home/ada"]) };
        assert_eq!(granted.admit(Path::new("/home/ada")), Ok(()));
        assert_eq!(granted.admit(Path::new("/home")), Err(Outside::TooBroad));
    }

    #[test]
    fn a_link_on_the_way_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(real.join("a/b")).unwrap();
        assert!(open_without_links(&real.join("a/b")).is_ok());
        std::os::unix::fs::symlink(real.join("a"), real.join("link")).unwrap();
        for linked in ["link", "link/b", "a/../a"] {
            assert!(open_without_links(&real.join(linked)).is_err(), "{linked}");
        }
    }
}
