//! The system's files, and settings that explain why something fails.

use std::fs;
use std::path::{Path, PathBuf};

use crate::host::{SYSTEM_PATHS, SystemPath, SystemPathKind};

/// Those system paths that exist, as what they are.
pub(super) fn system() -> Vec<SystemPath> {
    SYSTEM_PATHS.iter().filter_map(|path| look(Path::new(path))).collect()
}

fn look(path: &Path) -> Option<SystemPath> {
    let metadata = path.symlink_metadata().ok()?;
    let kind = if metadata.is_symlink() {
        SystemPathKind::Link(fs::read_link(path).ok()?)
    } else if metadata.is_dir() {
        SystemPathKind::Directory
    } else if metadata.is_file() {
        SystemPathKind::File
    } else {
        return None;
    };
    // A parent that is a link would put the path somewhere else; its target is in the list itself or not meant.
    let canonical_parent = path.parent().and_then(|parent| parent.canonicalize().ok())?;
    (Some(canonical_parent.as_path()) == path.parent()).then(|| SystemPath { path: PathBuf::from(path), kind })
}

/// Settings of the kernel that restrict what a sandbox can be made of.
pub(super) fn notes() -> Vec<String> {
    let settings = [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "user namespaces are disabled for unprivileged users"),
        ("/proc/sys/user/max_user_namespaces", "0", "user namespaces are disabled"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "AppArmor restricts user namespaces of programs without a profile",
        ),
    ];
    settings
        .into_iter()
        .filter(|(path, value, _)| fs::read_to_string(path).is_ok_and(|text| text.trim() == *value))
        .map(|(path, value, meaning)| format!("{meaning} ({path} is {value})"))
        .collect()
}
