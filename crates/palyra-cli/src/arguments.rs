//! The top of the command tree. Each command's own arguments are beside its code in `commands/`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use palyra_common::SecretRef;

use crate::commands::{
    agents, approvals, auxiliary, canvas, completions, config, daemon, devices, files, journal, mcp, models, policy,
    run, runs, sandbox, sessions, skills, tokens, usage, workspaces,
};
use crate::console::OutputFormat;
use crate::numbers;

const EXAMPLES: &str = "\
Start here:
  palyra run \"list the files, then read README.md\"   one task in the current directory
  palyra runs show last                              what it did, and why it ended
  palyra runs undo last                              undo its file changes

Without a model, a built-in planner handles a few plain requests. To use a real model:
  palyra models discover                             find keys and model servers you already have
  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 palyra run \"…\"     any OpenAI-compatible server
  OPENAI_API_KEY=… palyra run \"…\"
The two variables count until `palyra models set-default` has chosen a model.
A running daemon keeps the variables it was started with; `palyra daemon stop` makes it start afresh.

Exit codes: 0 success, 1 internal error, 2 invalid input, 3 not authenticated, 4 cannot connect,
5 unsupported, 6 refused by policy or waiting for your answer, 7 not possible in the current state
(or the run did not complete), 8 not found.";

/// Palyra runs agent tasks on your machine, durably: every step is journaled before it takes effect.
#[derive(Debug, Parser)]
#[command(name = "palyra", version, after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Arguments {
    /// Output format: text, json, or ndjson (one JSON document per line)
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Text, value_name = "FORMAT")]
    #[arg(hide_possible_values = true)]
    pub(crate) output: OutputFormat,

    #[command(flatten)]
    pub(crate) endpoint: EndpointArguments,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// The arguments in these words, of which the first is the program's name.
    pub(crate) fn read<W: Into<OsString> + Clone>(words: impl IntoIterator<Item = W>) -> Result<Self, clap::Error> {
        let mut command = numbers::with_signs(Self::command());
        let mut matches = command.try_get_matches_from_mut(words)?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

/// Where the daemon is, if not at the socket in the state root.
#[derive(Debug, Default, Args)]
pub(crate) struct EndpointArguments {
    /// Connect to the daemon at this address (https://HOST[:PORT], or http:// on this machine) [env: PALYRA_ENDPOINT]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Where to find its token, as env:NAME or file:PATH [default: env:PALYRA_TOKEN]
    // Under its field's name it would be read out of whatever a command calls `token`.
    #[arg(id = "endpoint_token", long = "token", global = true, value_name = "REFERENCE")]
    pub(crate) token: Option<SecretRef>,
    /// Trust this certificate authority (PEM) instead of the system's [env: PALYRA_CA_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a task and follow it until it ends
    Run(run::RunArguments),
    /// Inspect, steer, replay and undo runs
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    /// Inspect, continue, fork, export and archive sessions: conversations made of runs
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Manage agents: named profiles with their own instructions, tools and model
    #[command(subcommand)]
    Agents(agents::AgentsCommand),
    /// List and answer the approvals that runs wait for
    #[command(subcommand)]
    Approvals(approvals::ApprovalsCommand),
    /// View pages that agents show, as text or in a browser
    #[command(subcommand)]
    Canvas(canvas::CanvasCommand),
    /// Run small tasks on a model without tools: summaries, labels, fields, verdicts, images
    #[command(subcommand)]
    Auxiliary(auxiliary::AuxiliaryCommand),
    /// Read, verify, prove and back up the journal
    #[command(subcommand)]
    Journal(journal::JournalCommand),
    /// Check, explain, test, compare and prove policies
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Start, stop and inspect the daemon
    #[command(subcommand)]
    Daemon(daemon::DaemonCommand),
    /// Create, list, rotate and revoke API tokens
    #[command(subcommand)]
    Tokens(tokens::TokensCommand),
    /// Show token usage, cost and budgets
    Usage(usage::UsageArguments),
    /// List and revoke devices that have a certificate
    #[command(subcommand)]
    Devices(devices::DevicesCommand),
    /// Grant, list and revoke directories that tokens and devices may work in
    #[command(subcommand)]
    Workspaces(workspaces::WorkspacesCommand),
    /// List files that are not trusted, and endorse what you looked at
    #[command(subcommand)]
    Files(files::FilesCommand),
    /// Serve the Agent Control Protocol on standard input and output, one JSON document per line
    Acp,
    /// Manage MCP servers and their tools
    #[command(subcommand)]
    Mcp(mcp::McpCommand),
    /// Find, choose, list and test models, and see which one is used for what
    #[command(subcommand)]
    Models(models::ModelsCommand),
    /// Write, build, sign, install and manage skills: tools in WebAssembly
    #[command(subcommand)]
    Skills(skills::SkillsCommand),
    /// Show how programs are confined on this machine, and test it
    #[command(subcommand)]
    Sandbox(sandbox::SandboxCommand),
    /// Show and change the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Show version and build information
    Version,
    /// Print a shell completion script
    Completions(completions::CompletionsArguments),
    /// Print the command reference as Markdown
    #[command(hide = true)]
    Reference,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::Arguments;

    fn arguments(command: &clap::Command) -> impl Iterator<Item = &clap::Arg> {
        command.get_arguments().filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
    }

    /// Global arguments are read again after every command's own, by their ids; one that a command uses for something else is read as the wrong type.
    #[test]
    fn no_command_takes_the_name_of_a_global_argument() {
        let root = Arguments::command();
        let global: BTreeSet<_> = arguments(&root).map(|argument| argument.get_id().clone()).collect();
        assert!(global.iter().any(|id| id == "endpoint_token"), "{global:?}");
        let mut open: Vec<&clap::Command> = root.get_subcommands().collect();
        while let Some(command) = open.pop() {
            for argument in arguments(command) {
                assert!(!global.contains(argument.get_id()), "`{}` of `{}`", argument.get_id(), command.get_name());
            }
            open.extend(command.get_subcommands());
        }
    }
}
