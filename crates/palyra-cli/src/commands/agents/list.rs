//! `palyra agents list`.

use palyra_client::Client;
use palyra_client::api::{AgentView, ListAgentsParams, ListAgentsResponse};
use palyra_client::command::Command;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::{instant, shortened};

pub(super) async fn execute(client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let page: ListAgentsResponse = client.execute(&Command::AgentList(ListAgentsParams::default())).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.agents)?;
    } else if page.agents.is_empty() {
        console.remark("no agents; create one with: palyra agents set NAME --instructions \"…\"");
    } else {
        let rows: Vec<_> = page.agents.iter().map(row).collect();
        let lines = table::lines(["AGENT", "NAME", "MODEL", "MODE", "TOOLS", "CHANGED (UTC)"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
        if let Some(after) = &page.next_after {
            console.remark(&format!("more agents follow after {after}; use `--output json` to page through them"));
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
