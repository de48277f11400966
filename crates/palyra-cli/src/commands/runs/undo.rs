//! `palyra runs undo RUN`.

use palyra_client::api::{FileChangeView, UndoAction};
use palyra_client::{Client, ClientError};
use palyra_common::{ExitCode, RunId};

use super::RunArgument;
use crate::context::Context;
use crate::error::CliError;
use crate::render::text::{counted, shortened};

pub(super) async fn execute(run: &RunArgument, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let id = run.resolve(client).await?;
    let console = &context.console;
    let undone = match client.undo_run(id).await {
        Err(ClientError::Refused(envelope)) if envelope.code == "undo_conflict" && console.is_text() => {
            contents_before(id, client, context).await?.iter().for_each(|line| console.remark(line));
            return Err(ClientError::Refused(envelope).into());
        }
        undone => undone?,
    };
    if !console.is_text() {
        console.document(&undone)?;
        return Ok(ExitCode::Ok);
    }
    if undone.files.is_empty() {
        console.line(&format!("run {id} changed no files; nothing to undo"))?;
    } else {
        let removed = undone.files.iter().filter(|file| file.action == UndoAction::Removed).count();
        let counts = match (undone.files.len() - removed, removed) {
            (0, removed) => format!("{} removed", counted(removed, "file")),
            (restored, 0) => format!("{} restored", counted(restored, "file")),
            (restored, removed) => format!("{} restored, {removed} removed", counted(restored, "file")),
        };
        console.line(&format!("undid run {id}: {counts}"))?;
    }
    for file in &undone.files {
        let what = match file.action {
            UndoAction::Restored => "restored to what it was before the run",
            UndoAction::Removed => "removed; it was not there before the run",
        };
        console.line(&format!("  {}: {what}", shortened(&file.path, 200)))?;
    }
    Ok(ExitCode::Ok)
}

/// Where the files of a run are kept as they were before it, for whoever restores them by hand. A daemon elsewhere keeps them out of reach.
async fn contents_before(id: RunId, client: &Client, context: &Context) -> Result<Vec<String>, CliError> {
    if context.address().is_some() {
        return Ok(Vec::new());
    }
    let artifacts = context.state_root()?.join("artifacts");
    let line = |change: &FileChangeView| {
        let digest = change.before?.to_hex();
        let kept = artifacts.join(digest.get(..2)?).join(&digest);
        kept.is_file().then(|| format!("  {}: {}", shortened(&change.path, 200), kept.display()))
    };
    let lines: Vec<String> = client.run(id).await?.changes.iter().filter_map(line).collect();
    Ok(if lines.is_empty() {
        lines
    } else {
        [vec!["the versions from before the run, to restore by hand:".to_owned()], lines].concat()
    })
}
