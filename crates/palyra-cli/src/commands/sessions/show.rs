//! `palyra sessions show SESSION`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::LoadSessionParams;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::next_page::NextPage;
use crate::render::text::{instant, shortened};
use crate::{render, resolve};

/// How many runs are shown where nothing is said.
const DEFAULT_LIMIT: u32 = 50;

/// Which session.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// An id, its beginning or its end, a key, or `last`
    #[arg(value_name = "SESSION")]
    session: String,
    /// How many runs to show, newest first
    #[arg(short = 'n', long, default_value_t = DEFAULT_LIMIT, value_name = "COUNT", value_parser = numbers::at_least::<u32>(1))]
    limit: u32,
    /// Only runs older than this one
    #[arg(long, value_name = "RUN")]
    before: Option<String>,
}

pub(super) async fn execute(
    arguments: &ShowArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let session_id = resolve::session(client, &arguments.session).await?;
    let before = match &arguments.before {
        Some(run) => Some(resolve::run(client, run).await?),
        None => None,
    };
    let params = LoadSessionParams { limit: Some(arguments.limit), before };
    let detail = client.session(session_id, &params).await?;
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
    if let Some(before) = detail.next_before {
        let next = NextPage::of(&format!("palyra sessions show {session_id}"))
            .option("--limit", (arguments.limit != DEFAULT_LIMIT).then_some(arguments.limit))
            .option("--before", Some(before));
        console.remark(&next.line());
    }
    Ok(ExitCode::Ok)
}
