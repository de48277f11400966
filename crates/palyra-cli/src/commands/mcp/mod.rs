//! `palyra mcp …`: outside servers. Works on the files and on a direct connection, with or without a daemon; a running daemon
//! notices the changes by itself.

mod add;
mod classify;
mod list;
mod remove;
mod test;

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use palyra_common::ExitCode;
use palyra_mcp::{McpError, McpOptions, McpRegistry, McpServer, ServerName, ToolDescription};

use crate::console::plain;
use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
A server's tools are named mcp.NAME.TOOL. They are pinned when the server is added; a tool that changes later is withheld
until you accept it again. Until you review a server's classification, all its tools are treated as consequential.

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
    /// List servers, their pinned tools and their classification
    List,
    /// Connect to a server and compare its tools with the pinned ones
    Test(test::TestArguments),
    /// Propose, show or accept how a server's tools are treated
    Classify(classify::ClassifyArguments),
    /// Remove a server with its pins and classification
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

/// How long a server that was added before may take to answer: a person who waits is more patient than a run.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is said what is being waited for.
const TICK: Duration = Duration::from_millis(500);

/// The servers of this state root.
fn registry(context: &Context) -> Result<McpRegistry, CliError> {
    patient_registry(PATIENCE, context)
}

/// The same, for servers that may take so long to answer.
fn patient_registry(patience: Duration, context: &Context) -> Result<McpRegistry, CliError> {
    let directory = McpRegistry::directory_in(context.state_root()?);
    let options = McpOptions { connect_timeout: patience, list_timeout: patience, ..McpOptions::default() };
    Ok(McpRegistry::open(directory, context.environment.clone(), options)?)
}

/// Connects and lists, with a word on what is going on; what the server's program said is shown if that fails.
async fn tools_of(server: &McpServer, context: &Context) -> Result<Vec<ToolDescription>, McpError> {
    let began = Instant::now();
    let mut listing = Box::pin(server.list_tools());
    let listed = loop {
        let waited = began.elapsed().as_secs();
        context.console.progress(&format!("connecting to `{}` … {waited} s", server.name()));
        if let Ok(listed) = tokio::time::timeout(TICK, &mut listing).await {
            break listed;
        }
    };
    context.console.wipe_progress();
    if let Err(error) = &listed {
        let words = plain(&server.status().last_words);
        let lines: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
        // A single line is part of the error already.
        if lines.len() > 1 || !matches!(error, McpError::ConnectFailed { .. }) {
            for line in lines.iter().skip(lines.len().saturating_sub(SHOWN_LINES)) {
                context.console.remark(&format!("  {}: {line}", server.name()));
            }
        }
    }
    listed
}
