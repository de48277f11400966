//! Policies follow their files.
//!
//! The operator's directory is looked at once a second; when something in it changed, the whole set is loaded anew. A set that does not
//! load leaves the old one in force, loudly: in the log, and in the daemon's health until it is repaired.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use palyra_common::{ComponentHealth, HealthStatus, ToStableError as _};
use palyra_policy::PolicyStore;
use tokio_util::sync::CancellationToken;

/// How often the directory is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Names, times and sizes of the files: different whenever one of them was changed.
type Stamp = Vec<(PathBuf, Option<SystemTime>, u64)>;

/// Follows the operator's directory until the daemon ends.
pub(crate) async fn follow(policies: Arc<PolicyStore>, directory: PathBuf, closing: CancellationToken) {
    let mut known = stamp(&directory);
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let now = stamp(&directory);
        if now == known {
            continue;
        }
        known = now;
        let store = Arc::clone(&policies);
        match tokio::task::spawn_blocking(move || store.reload()).await {
            Ok(Ok(difference)) => tracing::info!(changes = difference.changes.len(), "policies reloaded"),
            Ok(Err(error)) => {
                let error = error.to_stable();
                tracing::error!(code = %error.code, "THE POLICIES ON DISK ARE NOT IN FORCE; the previous ones still apply: {}", error.message);
            }
            Err(error) => tracing::error!(%error, "loading the policies failed"),
        }
    }
}

/// What health says about the policies.
pub(crate) fn health(policies: &PolicyStore) -> ComponentHealth {
    match policies.last_error() {
        None => ComponentHealth::new(
            "policy",
            HealthStatus::Ok,
            format!("{} policies", policies.current().entries().count()),
        ),
        Some(error) => ComponentHealth::new(
            "policy",
            HealthStatus::Degraded,
            format!(
                "the policies on disk are not in force; the previous ones still apply: {}",
                error.to_stable().message
            ),
        ),
    }
}

/// Directories are small; a file that cannot be read counts as changed once it can be.
fn stamp(directory: &Path) -> Stamp {
    let mut stamp: Stamp = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| {
            let metadata = entry.metadata().ok();
            let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
            (entry.path(), modified, metadata.map_or(0, |metadata| metadata.len()))
        })
        .collect();
    stamp.sort();
    stamp
}
