//! `palyra mcp …`: outside servers. Works on the files and on a direct connection, with or without a daemon; a running daemon
//! notices the changes by itself.

mod add;
mod classify;
mod list;
mod remove;
mod test;

use std::time::Duration;

use clap::{Args, Subcommand};
use palyra_common::ExitCode;
use palyra_mcp::{McpError, McpOptions, McpRegistry, McpServer, ServerName, ToolDescription};

use crate::console::plain;
use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
A server's tools appear as mcp.NAME.TOOL. They are pinned as they are when the server is added; one that changes later is
withheld until you agree again. Until you have reviewed a server's classification, each of its tools counts as consequential.

Examples:
  palyra mcp add files -- npx -y @modelcontextprotocol/server-filesystem /home/me/papers
  palyra mcp add tickets --url https://tickets.example/mcp --header Authorization=env:TICKETS_TOKEN
  palyra mcp test files
  palyra mcp classify files
  palyra mcp classify files --accept";

/// So much of what a server's program said is shown when it fails.
const SHOWN_LINES: usize = 20;

/// What to do with outside servers.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum McpCommand {
    /// Add a server, connect to it once, and pin its tools as they are
    Add(add::AddArguments),
    /// List the servers with what was agreed to about them
    List,
    /// Connect to a server and compare its tools with what was agreed to
    Test(test::TestArguments),
    /// Write or show how a server's tools are treated, and agree to it
    Classify(classify::ClassifyArguments),
    /// Remove a server with everything that was agreed to about it
    Remove(NameArgument),
}

/// The server that is meant.
#[derive(Debug, Args)]
pub(crate) struct NameArgument {
    /// The server's name
    #[arg(value_name = "NAME")]
    name: ServerName,
}

pub(super) async fn execute(command: McpCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        McpCommand::Add(arguments) => add::execute(arguments, context).await,
        McpCommand::List => list::execute(context),
        McpCommand::Test(arguments) => test::execute(&arguments, context).await,
        McpCommand::Classify(arguments) => classify::execute(&arguments, context).await,
        McpCommand::Remove(argument) => remove::execute(&argument.name, context),
    }
}

/// The servers of this state root. A person who waits is more patient than a run: a first start may download something.
fn registry(context: &Context) -> Result<McpRegistry, CliError> {
    let directory = McpRegistry::directory_in(context.state_root()?);
    let options = McpOptions {
        connect_timeout: Duration::from_secs(60),
        list_timeout: Duration::from_secs(60),
        ..McpOptions::default()
    };
    Ok(McpRegistry::open(directory, context.environment.clone(), options)?)
}

/// Connects and lists, with a word on what is going on; what the server's program said is shown if that fails.
async fn tools_of(server: &McpServer, context: &Context) -> Result<Vec<ToolDescription>, McpError> {
    context.console.progress(&format!("connecting to {}…", server.name()));
    let listed = server.list_tools().await;
    context.console.wipe_progress();
    if listed.is_err() {
        let words = plain(&server.status().last_words);
        let lines: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.len().saturating_sub(SHOWN_LINES);
        for line in lines.iter().skip(last) {
            context.console.remark(&format!("  {}: {line}", server.name()));
        }
    }
    listed
}
