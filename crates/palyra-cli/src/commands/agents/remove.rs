//! `palyra agents remove AGENT`.

use palyra_client::Client;
use palyra_client::api::RemoveAgentResponse;
use palyra_client::command::{About, AgentName, Command};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;

pub(super) async fn execute(agent: AgentName, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let removed: RemoveAgentResponse = client.execute(&Command::AgentRemove(About::only(agent))).await?;
    if context.console.is_text() {
        let bindings = match removed.removed_bindings {
            0 => String::new(),
            1 => " and 1 binding".to_owned(),
            more => format!(" and {more} bindings"),
        };
        context.console.line(&format!("Removed agent {}{bindings}", removed.agent.agent_id))?;
    } else {
        context.console.document(&removed)?;
    }
    Ok(ExitCode::Ok)
}
