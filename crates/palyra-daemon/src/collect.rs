//! Once in a while the daemon removes artifacts that nothing names, such as what was stored for a record that was never appended.

use std::sync::Arc;
use std::time::Duration;

use palyra_common::ToStableError as _;
use palyra_journal::Journal;
use palyra_tools::EffectStore;
use tokio_util::sync::CancellationToken;

/// How long after a start it is done first: what a start recovers goes first.
const FIRST: Duration = Duration::from_secs(600);
/// How often it is done.
const EVERY: Duration = Duration::from_secs(24 * 3600);
/// How long an artifact may be on its way into a record.
const AGE: Duration = Duration::from_secs(24 * 3600);

/// Goes on until told to stop.
pub(crate) async fn keep_collected(journal: Journal, effects: Arc<EffectStore>, closing: CancellationToken) {
    let mut pause = FIRST;
    while closing.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
        pause = EVERY;
        let (journal, effects) = (journal.clone(), Arc::clone(&effects));
        if let Err(error) = tokio::task::spawn_blocking(move || collect(&journal, &effects)).await {
            tracing::warn!(%error, "artifacts could not be collected");
        }
    }
}

fn collect(journal: &Journal, effects: &EffectStore) {
    let named = match effects.named_artifacts() {
        Ok(named) => named,
        Err(error) => {
            tracing::warn!(error = %error.to_stable(), "artifacts are not collected: an effect cannot be read");
            return;
        }
    };
    match journal.collect_artifacts(AGE, &named) {
        Ok(collected) if collected.removed > 0 => {
            tracing::info!(
                removed = collected.removed,
                bytes = collected.bytes,
                "artifacts that nothing names were removed"
            );
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(error = %error.to_stable(), "artifacts are not collected"),
    }
}
