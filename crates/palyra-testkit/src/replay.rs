//! Every run of every system test must replay.

use anyhow::{Result, ensure};
use palyra_client::Client;
use palyra_client::api::ListRunsParams;

/// Asks the daemon to replay every run it has, and fails at the first that does not reproduce its tape. Returns how many
/// there were.
///
/// # Errors
/// When a run differs, or the daemon cannot be asked.
pub async fn assert_all_runs_replay(client: &Client) -> Result<usize> {
    let mut replayed = 0;
    let mut before = None;
    loop {
        let page = client.runs(&ListRunsParams { limit: Some(100), before, ..ListRunsParams::default() }).await?;
        for run in &page.runs {
            let report = client.replay_run(run.run_id).await?;
            ensure!(report.identical, "run {} does not replay: {:?}", run.run_id, report.first_difference);
            ensure!(report.steps > 0, "replaying run {} fed nothing", run.run_id);
            replayed += 1;
        }
        before = page.next_before;
        if before.is_none() {
            return Ok(replayed);
        }
    }
}
