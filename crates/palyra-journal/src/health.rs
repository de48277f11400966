//! State health: what is wrong with a state root, and what to do about it. Looks without changing anything, at the price of a few
//! file reads; going through the log is [`crate::verify`]'s business.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use palyra_common::ToStableError as _;
use serde::{Deserialize, Serialize};

use crate::anchor::{self, AnchorState};
use crate::damage;
use crate::keys;
use crate::layout::{Layout, check_writable, free_bytes};
use crate::lock;
use crate::options::JournalOptions;

/// A write-ahead log larger than this was not folded back for a long time.
const WAL_LARGE_BYTES: u64 = 256 * 1024 * 1024;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Works, but should be looked at.
    Warning,
    /// The journal does not work, or soon will not.
    Critical,
}

/// One observation about a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable snake_case code.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// What was found.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// Where.
    pub path: PathBuf,
}

/// Looks at a state root, in use or not; the most severe findings come first.
#[must_use]
pub fn state_health(root: &Path) -> Vec<Finding> {
    let layout = Layout::new(root);
    let mut findings = Vec::new();
    if !layout.journal_dir().exists() {
        note(
            &mut findings,
            Severity::Info,
            "journal_not_found",
            "no journal exists here yet",
            "start the daemon once",
            root,
        );
        return findings;
    }
    damage_and_files(&layout, &mut findings);
    key_files(&layout, &mut findings);
    space(&layout, &mut findings);
    leftovers(&layout, &mut findings);
    if lock::is_held(&layout) {
        let message = format!("the state is in use by {}", lock::holder(&layout));
        note(&mut findings, Severity::Info, "state_in_use", &message, "nothing to do", &layout.lock());
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

fn damage_and_files(layout: &Layout, findings: &mut Vec<Finding>) {
    let recover = "restore a backup, or accept the loss explicitly to start a new journal";
    match damage::marker(layout) {
        Ok(Some(marker)) => {
            let message = format!("the journal is damaged at {}: {}", marker.position, marker.reason);
            let path = marker.set_aside.unwrap_or_else(|| layout.damage_marker());
            note(findings, Severity::Critical, "journal_damaged", &message, recover, &path);
        }
        Ok(None) if !layout.database().exists() && (layout.anchor().exists() || layout.outer_anchor().exists()) => {
            let message = "the database is missing, but a journal existed here";
            note(findings, Severity::Critical, "journal_damaged", message, recover, &layout.database());
        }
        Ok(None) => {}
        Err(error) => {
            let hint = "check the permissions of the state root";
            note(findings, Severity::Critical, "storage_failed", &error.to_string(), hint, &layout.damage_marker());
        }
    }
    if layout.database().exists() {
        let hint = "run `palyra journal verify` to see what else was modified";
        match anchor::read(&layout.anchor()) {
            Ok(AnchorState::Says(_)) => {}
            Ok(AnchorState::Missing) => {
                note(findings, Severity::Critical, "anchor_missing", "the anchor is missing", hint, &layout.anchor());
            }
            Ok(AnchorState::Unreadable) => {
                note(
                    findings,
                    Severity::Critical,
                    "anchor_unreadable",
                    "the anchor cannot be read",
                    hint,
                    &layout.anchor(),
                );
            }
            Err(error) => {
                note(findings, Severity::Critical, "storage_failed", &error.to_string(), hint, &layout.anchor());
            }
        }
    }
}

fn key_files(layout: &Layout, findings: &mut Vec<Finding>) {
    let path = layout.private_key();
    match fs::metadata(&path) {
        Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
            let message = "other users can read the signing key";
            let hint = "run `chmod 600` on the file; if others use this machine, restore a backup to get a new key";
            note(findings, Severity::Critical, "journal_key_unusable", message, hint, &path);
        }
        Ok(_) => {}
        Err(_) if layout.database().exists() => {
            let hint = "restore the key file, or restore a backup, which creates a new key";
            note(findings, Severity::Critical, "journal_key_unusable", "the signing key is missing", hint, &path);
        }
        Err(_) => {}
    }
    if let Err(error) = keys::public_keys(layout) {
        let stable = error.to_stable();
        let hint = stable.recovery_hint.unwrap_or_default();
        note(findings, Severity::Critical, &stable.code, &stable.message, &hint, &layout.public_keys());
    }
}

fn space(layout: &Layout, findings: &mut Vec<Finding>) {
    let wanted = JournalOptions::at(&layout.root).min_free_bytes;
    if let Err(error) = check_writable(&layout.root) {
        let error = error.to_stable();
        let hint = error.recovery_hint.unwrap_or_default();
        note(findings, Severity::Critical, &error.code, &error.message, &hint, &layout.root);
        return;
    }
    if let Ok(free) = free_bytes(&layout.root)
        && free < wanted
    {
        let message = format!("only {free} bytes are free; new work is refused below {wanted}");
        note(findings, Severity::Critical, "disk_full", &message, "free some space", &layout.root);
    }
    let mut wal = layout.database().into_os_string();
    wal.push("-wal");
    let wal = PathBuf::from(wal);
    if let Ok(metadata) = fs::metadata(&wal)
        && metadata.len() > WAL_LARGE_BYTES
    {
        let message = format!("the write-ahead log has grown to {} bytes", metadata.len());
        note(findings, Severity::Warning, "wal_large", &message, "restart the daemon when it is idle", &wal);
    }
}

fn leftovers(layout: &Layout, findings: &mut Vec<Finding>) {
    let Ok(entries) = fs::read_dir(layout.journal_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("lost-") || name.contains(".damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm")
        {
            let message = "files of a damaged journal";
            let hint = "delete them once you are sure they are not needed";
            note(findings, Severity::Warning, "damaged_remains", message, hint, &entry.path());
        }
    }
}

fn note(findings: &mut Vec<Finding>, severity: Severity, code: &str, message: &str, hint: &str, path: &Path) {
    findings.push(Finding {
        code: code.to_owned(),
        severity,
        message: message.to_owned(),
        hint: hint.to_owned(),
        path: path.to_owned(),
    });
}
