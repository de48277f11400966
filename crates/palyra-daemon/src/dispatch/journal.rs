//! Commands about the journal that are answered once.

use std::path::PathBuf;

use palyra_client::api::{BackupJournalParams, BackupJournalResponse};
use serde_json::Value;

use super::refusal::{Refusal, Result};
use crate::app::App;

pub(super) async fn prove(app: &App, seq: u64) -> Result<Value> {
    let proof = app.journal.prove(seq).await?;
    serde_json::to_value(proof).map_err(|error| Refusal::internal(format!("a proof cannot be written: {error}")))
}

pub(super) async fn backup(app: &App, params: BackupJournalParams) -> Result<BackupJournalResponse> {
    let dest = PathBuf::from(&params.dest);
    if !dest.is_absolute() {
        return Err(Refusal::field("dest", format!("`{}` is not an absolute path", params.dest)));
    }
    let report = app.journal.backup(dest, outside(app)).await?;
    Ok(BackupJournalResponse {
        dest: report.path.display().to_string(),
        records: report.records,
        segments: report.segments,
        artifacts: report.artifacts,
        bytes: report.bytes,
        left_out: report.left_out,
    })
}

/// What belongs to this daemon and lies outside its state root.
fn outside(app: &App) -> Vec<String> {
    let config = app.config.file().map(|file| format!("configuration: {}", file.display()));
    let policies = app.config.config().policy.directory.as_ref().map(|found| format!("policies: {}", found.display()));
    let unconfigured = || "configuration and policies outside the state root".to_owned();
    let named: Vec<String> = config.into_iter().chain(policies).collect();
    if named.is_empty() { vec![unconfigured()] } else { named }
}
