//! Roots that the configuration names.

use std::path::{Path, PathBuf};

use palyra_common::{ErrorCategory, StableErrorEnvelope};
use palyra_identity::PrincipalId;
use palyra_tools::TrustedTrees;

use super::real;
use crate::error::DaemonError;

/// Stands for every principal.
const EVERYBODY: &str = "*";

/// One line of `workspaces.roots`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfiguredRoot {
    /// A principal, or `*`.
    pub(crate) principal: String,
    pub(crate) path: PathBuf,
}

impl ConfiguredRoot {
    pub(super) fn is_for(&self, principal: &str) -> bool {
        self.principal == EVERYBODY || self.principal == principal
    }
}

/// Reads all lines; one that is wrong keeps the daemon from starting, since nobody knows what it was meant to allow.
pub(super) fn read(lines: &[String]) -> Result<Vec<ConfiguredRoot>, DaemonError> {
    lines.iter().map(|line| one(line)).collect()
}

fn one(line: &str) -> Result<ConfiguredRoot, DaemonError> {
    let parts =
        line.trim().split_once(char::is_whitespace).map(|(principal, path)| (principal, Path::new(path.trim())));
    match parts {
        Some((principal, path)) if path.is_absolute() && is_principal(principal) => {
            Ok(ConfiguredRoot { principal: principal.to_owned(), path: real(path) })
        }
        _ => Err(DaemonError::Kept(Box::new(wrong(line)))),
    }
}

/// Reads `workspaces.trusted`; an entry that is wrong keeps the daemon from starting, since nobody knows whose files it was meant to speak for.
pub(crate) fn trusted(entries: &[String], home: Option<&Path>) -> Result<TrustedTrees, DaemonError> {
    TrustedTrees::read(entries, home).map_err(|error| {
        let message = format!("`workspaces.trusted` contains an entry that cannot be used: {error}");
        let envelope = StableErrorEnvelope::new("workspace_trust_invalid", ErrorCategory::Validation, message)
            .hint("name directories such as `~/src`, and remotes such as `github.com/me`");
        DaemonError::Kept(Box::new(envelope))
    })
}

fn is_principal(text: &str) -> bool {
    text == EVERYBODY || text.parse::<PrincipalId>().is_ok()
}

fn wrong(line: &str) -> StableErrorEnvelope {
    let message = format!("`workspaces.roots` contains `{line}`, which is not a principal and an absolute path");
    StableErrorEnvelope::new("workspace_root_invalid", ErrorCategory::Validation, message)
        .hint("write each as `PRINCIPAL DIRECTORY`, such as `user:ci /srv/ci`, or `* /srv/shared` for every principal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_principal_and_a_directory() {
        let root = one("user:ci  /nowhere/with space").unwrap();
        assert_eq!(root, ConfiguredRoot { principal: "user:ci".into(), path: "/nowhere/with space".into() });
        assert!(root.is_for("user:ci") && !root.is_for("user:cia"));
        assert!(one("* /nowhere").unwrap().is_for("uid:7"));
        for bad in ["", "/srv", "user:ci", "user:ci srv", "ci /srv", "** /srv", "user:* /srv"] {
            assert!(one(bad).is_err(), "{bad}");
        }
    }
}
