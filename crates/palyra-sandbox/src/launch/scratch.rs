//! The private directory of tier B, which has no file systems of its own.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::setup::Failure;
use crate::grant::Owner;
use crate::plan::{GuestIdentity, Plan};

/// Removed when dropped.
pub(super) struct Scratch(Option<PathBuf>);

impl Scratch {
    pub(super) fn make(plan: &Plan, host_ids: Owner) -> Result<Self, Failure> {
        let Some(path) = &plan.scratch else { return Ok(Self(None)) };
        let make = || -> io::Result<()> {
            fs::DirBuilder::new().mode(0o700).create(path)?;
            if plan.identity == GuestIdentity::Private {
                std::os::unix::fs::lchown(path, Some(host_ids.uid), Some(host_ids.gid))?;
            }
            Ok(())
        };
        make().map_err(|error| Failure::new("scratch_directory", path.display().to_string(), &error))?;
        Ok(Self(Some(path.clone())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            remove_tree(path);
        }
    }
}

/// Removes a directory that a guest may have made unreadable; does not follow links.
fn remove_tree(path: &Path) {
    if fs::remove_dir_all(path).is_ok() {
        return;
    }
    open_up(path);
    let _ = fs::remove_dir_all(path);
}

fn open_up(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
