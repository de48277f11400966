//! The commands, one folder per noun and one file per verb.

mod acp;
pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod auxiliary;
pub(crate) mod canvas;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod devices;
pub(crate) mod files;
pub(crate) mod journal;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod sandbox;
pub(crate) mod sessions;
pub(crate) mod skills;
pub(crate) mod tokens;
pub(crate) mod usage;
mod version;
pub(crate) mod workspaces;

use palyra_common::ExitCode;

use crate::arguments::Command;
use crate::context::Context;
use crate::error::CliError;

/// Runs a command to its end.
pub(crate) async fn dispatch(command: Command, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        Command::Run(arguments) => run::execute(arguments, context).await,
        Command::Runs(command) => runs::execute(command, context).await,
        Command::Sessions(command) => sessions::execute(command, context).await,
        Command::Tokens(command) => tokens::execute(command, context).await,
        Command::Usage(arguments) => usage::execute(arguments, context).await,
        Command::Canvas(command) => canvas::execute(command, context).await,
        Command::Devices(command) => devices::execute(command, context).await,
        Command::Workspaces(command) => workspaces::execute(command, context).await,
        Command::Acp => acp::execute(context).await,
        Command::Agents(command) => agents::execute(command, context).await,
        Command::Auxiliary(command) => auxiliary::execute(command, context).await,
        Command::Approvals(command) => approvals::execute(command, context).await,
        Command::Files(command) => files::execute(command, context).await,
        Command::Journal(command) => journal::execute(command, context).await,
        Command::Policy(command) => policy::execute(&command, context),
        Command::Sandbox(command) => sandbox::execute(&command, context),
        Command::Daemon(command) => daemon::execute(command, context).await,
        Command::Mcp(command) => mcp::execute(command, context).await,
        Command::Skills(command) => skills::execute(command, context).await,
        Command::Models(command) => models::execute(command, context).await,
        Command::Config(command) => config::execute(command, context),
        Command::Version => version::execute(context),
        Command::Completions(arguments) => completions::execute(&arguments, context),
        Command::Reference => context.console.piece(&crate::reference()).map(|()| ExitCode::Ok),
    }
}
