//! `palyra agents show AGENT`.

use palyra_client::Client;
use palyra_client::api::AgentView;
use palyra_client::command::AgentName;
use palyra_common::ExitCode;

use crate::console::plain;
use crate::context::Context;
use crate::error::CliError;
use crate::render::text::{instant, shortened};

pub(super) async fn execute(agent: AgentName, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let agent = super::get(client, agent).await?;
    if context.console.is_text() {
        lines(&agent).iter().try_for_each(|line| context.console.line(line))?;
    } else {
        context.console.document(&agent)?;
    }
    Ok(ExitCode::Ok)
}

fn lines(agent: &AgentView) -> Vec<String> {
    let mut lines = vec![format!("agent      {}", agent.agent_id)];
    let mode = agent.mode.map(|mode| mode.to_string());
    let named = [
        ("name", Some(agent.name.as_str()).filter(|name| !name.is_empty())),
        ("model", agent.model.as_deref()),
        ("mode", mode.as_deref()),
        ("workspace", agent.workspace.as_deref()),
    ];
    for (field, value) in named {
        if let Some(value) = value {
            lines.push(format!("{field:<10} {}", shortened(value, 300)));
        }
    }
    let tools = if agent.tools.is_empty() { "all tools that policy permits".to_owned() } else { agent.tools.join(" ") };
    lines.push(format!("tools      {}", plain(&tools)));
    let (version, by) = (agent.version, shortened(&agent.updated_by, 60));
    lines.push(format!("changed    {} UTC by {by}, version {version}", instant(agent.updated_at)));
    if !agent.instructions.is_empty() {
        lines.push(String::new());
        lines.extend(plain(&agent.instructions).lines().map(str::to_owned));
    }
    lines
}
