//! Where runs of this interface work: where the request says, where the configuration says, else in an empty directory of the conversation's own.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use palyra_common::{Digest, ErrorCategory, RunId, StableErrorEnvelope};

use crate::app::App;
use crate::dispatch::{Refusal, Result};

/// The directory of a new conversation. With a key it is the same each time, so that a repeated request is the same request.
pub(super) async fn fresh(app: &App, owner: &str, key: Option<&str>) -> Result<String> {
    if let Some(configured) = &app.config.config().openai.workspace {
        return Ok(configured.display().to_string());
    }
    let name = match key {
        Some(key) => Digest::of_parts(&[owner.as_bytes(), key.as_bytes()]).to_hex(),
        None => RunId::generate().to_string(),
    };
    let path = app.workspaces.conversations_of(owner).join(name);
    let made = path.clone();
    tokio::task::spawn_blocking(move || DirBuilder::new().recursive(true).mode(0o700).create(made))
        .await
        .map_err(|error| Refusal::internal(error.to_string()))?
        .map_err(|error| cannot_be_made(&path, &error))?;
    Ok(path.display().to_string())
}

fn cannot_be_made(path: &Path, error: &std::io::Error) -> Refusal {
    let message = format!("cannot create the workspace `{}`: {error}", path.display());
    StableErrorEnvelope::new("workspace_not_made", ErrorCategory::Conflict, message)
        .hint("name a directory with `openai.workspace` in the configuration or `metadata.workspace` in the request")
        .into()
}
