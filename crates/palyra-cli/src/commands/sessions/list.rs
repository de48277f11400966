//! `palyra sessions list`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::ListSessionsParams;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::next_page::NextPage;
use crate::render::table;
use crate::render::text::{instant, shortened};

/// How many are listed where nothing is said.
const DEFAULT_LIMIT: u32 = 20;

/// How many.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// How many to list
    #[arg(short = 'n', long, default_value_t = DEFAULT_LIMIT, value_name = "COUNT", value_parser = numbers::at_least::<u32>(1))]
    limit: u32,
    /// Only older ones, as the list before says where it ends
    #[arg(long, value_name = "POSITION", value_parser = numbers::at_least::<u64>(1))]
    before: Option<u64>,
}

pub(super) async fn execute(
    arguments: &ListArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let params = ListSessionsParams { limit: Some(arguments.limit), before: arguments.before, archived: None };
    let page = client.sessions(&params).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.sessions)?;
    } else if page.sessions.is_empty() {
        console.remark(match arguments.before {
            None => "no sessions yet; a run creates one: palyra run \"list the files\"",
            Some(_) => "no older sessions",
        });
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
        if let Some(before) = page.next_before {
            let limit = (arguments.limit != DEFAULT_LIMIT).then_some(arguments.limit);
            let next = NextPage::of("palyra sessions list").option("--limit", limit).option("--before", Some(before));
            console.remark(&next.line());
        }
    }
    Ok(ExitCode::Ok)
}
