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
    let report = app.journal.backup(dest).await?;
    Ok(BackupJournalResponse {
        dest: report.path.display().to_string(),
        records: report.records,
        segments: report.segments,
        artifacts: report.artifacts,
        bytes: report.bytes,
        left_out: report.left_out,
    })
}
