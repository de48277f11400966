//! `palyra sessions list`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::ListSessionsParams;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::table;
use crate::render::text::{instant, shortened};

/// How many.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// How many to list
    #[arg(short = 'n', long, default_value_t = 20, value_name = "COUNT", value_parser = numbers::at_least::<u32>(1))]
    limit: u32,
}

pub(super) async fn execute(
    arguments: &ListArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let page =
        client.sessions(&ListSessionsParams { limit: Some(arguments.limit), before: None, archived: None }).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.sessions)?;
    } else if page.sessions.is_empty() {
        console.remark("no sessions yet; a run creates one: palyra run \"list the files\"");
    } else {
        let rows: Vec<_> = page
            .sessions
            .iter()
            .map(|session| {
                [
                    session.session_id.to_string(),
                    instant(session.updated_at),
                    session.run_count.to_string(),
                    shortened(session.session_key.as_deref().unwrap_or("–"), 24),
                    shortened(&session.title, 60),
                ]
            })
            .collect();
        let lines = table::lines(["SESSION", "LAST ACTIVE (UTC)", "RUNS", "KEY", "TITLE"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}
