//! `palyra agents list`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{AgentView, ListAgentsParams, ListAgentsResponse};
use palyra_client::command::Command;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::next_page::NextPage;
use crate::render::table;
use crate::render::text::{instant, shortened};

/// Which agents.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// How many to list
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = numbers::at_least::<u32>(1))]
    limit: Option<u32>,
    /// Only those whose name comes after this one
    #[arg(long, value_name = "AGENT")]
    after: Option<String>,
}

pub(super) async fn execute(
    arguments: ListArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let ListArguments { limit, after } = arguments;
    let params = ListAgentsParams { limit, after: after.clone() };
    let page: ListAgentsResponse = client.execute(&Command::AgentList(params)).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.agents)?;
    } else if page.agents.is_empty() {
        console.remark(&match after {
            None => "no agents; create one with: palyra agents set NAME --instructions \"…\"".to_owned(),
            Some(after) => format!("no agents after {}", shortened(&after, 60)),
        });
    } else {
        let rows: Vec<_> = page.agents.iter().map(row).collect();
        let lines = table::lines(["AGENT", "NAME", "MODEL", "MODE", "TOOLS", "CHANGED (UTC)"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
        if let Some(after) = &page.next_after {
            let next = NextPage::of("palyra agents list").option("--limit", limit).option("--after", Some(after));
            console.remark(&next.line());
        }
    }
    Ok(ExitCode::Ok)
}

fn row(agent: &AgentView) -> [String; 6] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let tools = if agent.tools.is_empty() { "all".to_owned() } else { shortened(&agent.tools.join(" "), 40) };
    [
        agent.agent_id.clone(),
        shortened(&agent.name, 30),
        or_dash(agent.model.as_deref().map(|model| shortened(model, 30))),
        or_dash(agent.mode.map(|mode| mode.to_string())),
        tools,
        instant(agent.updated_at),
    ]
}
