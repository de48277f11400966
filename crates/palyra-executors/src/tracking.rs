//! What programs change in a workspace, found by comparing it before and after: for processes of our own, and for servers that run outside of any sandbox.

use std::sync::Arc;
use std::time::Duration;

use palyra_tools::{Changed, Checkpoint, CheckpointLimits, CheckpointStore, Invocation, ToolError};
use tokio_util::sync::CancellationToken;

/// How long a cancelled call may still look for changes; the engine waits for 60 ms.
const HURRY: Duration = Duration::from_millis(35);

/// Keeps what the files of the workspace are before a call.
///
/// # Errors
/// When the files cannot be copied, or the call is cancelled meanwhile.
pub async fn checkpoint(store: &Arc<CheckpointStore>, invocation: &Invocation) -> Result<Checkpoint, ToolError> {
    let (store, workspace) = (Arc::clone(store), Arc::clone(&invocation.workspace));
    let (run, cancel) = (invocation.run_id, invocation.cancel.clone());
    blocking(move || store.take(&workspace, CheckpointLimits::default(), run, &cancel)).await
}

/// What changed since. A call that is cancelled has to return at once, so in a large workspace it may not come to know.
///
/// # Errors
/// When the workspace cannot be read, or what was there before cannot be kept.
pub async fn changes_since(checkpoint: Checkpoint, invocation: &Invocation) -> Result<Changed, ToolError> {
    let (workspace, artifacts) = (Arc::clone(&invocation.workspace), Arc::clone(&invocation.artifacts));
    // Whoever stops waiting also ends the work.
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let compared = blocking(move || checkpoint.changes(&workspace, artifacts.as_ref(), &stop));
    let out_of_time = async {
        invocation.cancel.cancelled().await;
        tokio::time::sleep(HURRY).await;
    };
    tokio::select! {
        changed = compared => changed,
        () = out_of_time => {
            let not_covered = vec!["the call was stopped, and there was no time to compare the files".to_owned()];
            Ok(Changed { not_covered, ..Changed::default() })
        }
    }
}

/// Runs blocking work on a thread for it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(ToolError::Internal(error.to_string())))
}
