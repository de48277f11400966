//! `palyra runs undo RUN`.

use palyra_client::Client;
use palyra_client::api::UndoAction;
use palyra_common::ExitCode;

use super::RunArgument;
use crate::context::Context;
use crate::error::CliError;
use crate::render::runs::certainty;
use crate::render::text::{counted, shortened};

pub(super) async fn execute(run: &RunArgument, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let id = run.resolve(client).await?;
    let undone = client.undo_run(id).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&undone)?;
        return Ok(ExitCode::Ok);
    }
    if undone.files.is_empty() {
        console.line(&format!("run {id} changed no files; nothing to undo"))?;
    } else {
        console.line(&format!("run {id}: {} restored", counted(undone.files.len(), "file")))?;
    }
    for file in &undone.files {
        let what = match file.action {
            UndoAction::Restored => "restored",
            UndoAction::Removed => "removed ",
        };
        console.line(&format!("  {what} {}{}", shortened(&file.path, 200), certainty(file.attribution)))?;
    }
    Ok(ExitCode::Ok)
}
