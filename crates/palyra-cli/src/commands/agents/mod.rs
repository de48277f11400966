//! `palyra agents …`: named ways of working.

mod list;
mod remove;
mod set;
mod show;

use clap::{Args, Subcommand};
use palyra_client::Client;
use palyra_client::api::AgentView;
use palyra_client::command::{About, AgentName, Command};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
An agent defines instructions that count as yours, a model, a working directory, the loosest mode of its runs and the only
tools they may use. Runs that name no agent use `main`. Routes in models.toml and budgets refer to agents by name.

Examples:
  palyra agents set reviewer --instructions \"Read only, and say what is risky.\" --tool 'palyra.fs.read' --mode strict
  palyra agents set reviewer --from reviewer.toml
  palyra run --agent reviewer \"look at the last change\"
  palyra agents remove reviewer";

/// What to do with agents.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum AgentsCommand {
    /// List agents
    List(list::ListArguments),
    /// Show everything about an agent
    Show(NameArgument),
    /// Create an agent, or change the given fields of one
    Set(Box<set::SetArguments>),
    /// Remove an agent and the bindings that name it; its active runs continue
    Remove(NameArgument),
}

/// The agent that is meant.
#[derive(Debug, Args)]
pub(crate) struct NameArgument {
    /// The agent's name
    #[arg(value_name = "AGENT")]
    agent: AgentName,
}

pub(super) async fn execute(command: AgentsCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = launcher::connect(context).await?;
    match command {
        AgentsCommand::List(arguments) => list::execute(arguments, &client, context).await,
        AgentsCommand::Show(argument) => show::execute(argument.agent, &client, context).await,
        AgentsCommand::Set(arguments) => set::execute(*arguments, &client, context).await,
        AgentsCommand::Remove(argument) => remove::execute(argument.agent, &client, context).await,
    }
}

async fn get(client: &Client, agent: AgentName) -> Result<AgentView, CliError> {
    Ok(client.execute(&Command::AgentGet(About::only(agent))).await?)
}

/// Whether an agent has a directory of its own to work in. One that is not there, or a name that none can have, is the daemon's to refuse.
pub(super) async fn works_elsewhere(client: &Client, agent: &str) -> Result<bool, CliError> {
    let Ok(name) = agent.parse() else { return Ok(false) };
    match client.execute::<AgentView>(&Command::AgentGet(About::only(name))).await {
        Ok(agent) => Ok(agent.workspace.is_some()),
        Err(palyra_client::ClientError::Refused(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
