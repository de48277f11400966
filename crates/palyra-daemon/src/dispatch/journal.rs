//! Commands about the journal that are answered once.

use std::path::PathBuf;

use palyra_agent::WorkspaceAuthority;
use palyra_client::api::{BackupJournalParams, BackupJournalResponse};
use palyra_common::AcpCommand;
use serde_json::Value;

use super::caller::Caller;
use super::refusal::{Refusal, Result};
use super::workspaces;
use crate::app::App;

pub(super) async fn prove(app: &App, seq: u64) -> Result<Value> {
    let proof = app.journal.prove(seq).await?;
    serde_json::to_value(proof).map_err(|error| Refusal::internal(format!("a proof cannot be written: {error}")))
}

/// Copies the journal to a new directory. Whoever is not at the machine itself writes only where their runs may.
pub(super) async fn backup(app: &App, caller: &Caller, params: BackupJournalParams) -> Result<BackupJournalResponse> {
    let dest = PathBuf::from(&params.dest);
    if !dest.is_absolute() {
        return Err(Refusal::field("dest", format!("`{}` is not an absolute path", params.dest)));
    }
    let dest = match caller.started_with(app).workspace {
        WorkspaceAuthority::LocalOwner => dest,
        WorkspaceAuthority::Granted | WorkspaceAuthority::Conversation => {
            let (Some(parent), Some(name)) = (dest.parent(), dest.file_name()) else {
                return Err(Refusal::field("dest", format!("`{}` names no directory to create", params.dest)));
            };
            let parent = workspaces::permit(app, caller, AcpCommand::JournalBackup, &parent.to_string_lossy()).await?;
            PathBuf::from(parent).join(name)
        }
    };
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
