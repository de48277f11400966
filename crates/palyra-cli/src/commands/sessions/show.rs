//! `palyra sessions show SESSION`.

use clap::Args;
use palyra_client::Client;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render::text::{instant, shortened};
use crate::{render, resolve};

/// Which session.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// An id, its beginning or its end, a key, or `last`
    #[arg(value_name = "SESSION")]
    session: String,
}

pub(super) async fn execute(
    arguments: &ShowArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let detail = client.session(resolve::session(client, &arguments.session).await?).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&detail)?;
        return Ok(ExitCode::Ok);
    }
    let session = &detail.session;
    console.line(&format!("session  {}", session.session_id))?;
    if let Some(key) = &session.session_key {
        console.line(&format!("key      {}", shortened(key, 100)))?;
    }
    console.line(&format!("title    {}", shortened(&session.title, 100)))?;
    console.line(&format!("began    {} UTC", instant(session.created_at)))?;
    console.line(&format!("active   {} UTC\n", instant(session.updated_at)))?;
    render::runs::list(&detail.runs).iter().try_for_each(|line| console.line(line))?;
    Ok(ExitCode::Ok)
}
