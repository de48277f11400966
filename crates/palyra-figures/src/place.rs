//! Where reports are kept: `target/figures` of the checkout, or `PALYRA_FIGURES_DIR`.
//!
//! Build output may live outside the checkout (`CARGO_TARGET_DIR`); reports do not follow it, so that they are found at
//! the same place whatever the build cache is.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::FiguresError;

/// The directory that holds one JSON file per report.
///
/// # Errors
/// When the variable is not set and no workspace lies above the current directory.
pub fn figures_directory() -> Result<PathBuf, FiguresError> {
    match env::var_os("PALYRA_FIGURES_DIR").filter(|value| !value.is_empty()) {
        Some(directory) => Ok(PathBuf::from(directory)),
        None => Ok(workspace_root()?.join("target").join("figures")),
    }
}

/// The root of the workspace that the current directory belongs to.
///
/// # Errors
/// When there is none.
pub fn workspace_root() -> Result<PathBuf, FiguresError> {
    let here = env::current_dir().map_err(|source| FiguresError::Io { path: PathBuf::from("."), source })?;
    workspace_above(&here).ok_or(FiguresError::NoWorkspace { from: here })
}

fn workspace_above(from: &Path) -> Option<PathBuf> {
    from.ancestors().find(|directory| declares_workspace(&directory.join("Cargo.toml"))).map(Path::to_path_buf)
}

fn declares_workspace(manifest: &Path) -> bool {
    fs::read_to_string(manifest).is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_finds_the_workspace_above_it() {
        let root = tempfile::tempdir().unwrap();
        let member = root.path().join("crates/one");
        fs::create_dir_all(&member).unwrap();
        assert_eq!(workspace_above(&member), None);
        fs::write(member.join("Cargo.toml"), "[package]\nname = \"one\"\n").unwrap();
        fs::write(root.path().join("Cargo.toml"), "[workspace]\nmembers = [\"crates/*\"]\n").unwrap();
        assert_eq!(workspace_above(&member), Some(root.path().to_path_buf()));
    }
}
