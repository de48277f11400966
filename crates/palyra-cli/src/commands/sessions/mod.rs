//! `palyra sessions …`.

mod list;
mod show;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
SESSION is an id, its beginning or its end, a key, or `last`.

Examples:
  palyra sessions list
  palyra run --session last \"and now the other file\"";

/// What to do with sessions.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest activity first
    List(list::ListArguments),
    /// Show one session with its runs
    Show(show::ShowArguments),
}

pub(super) async fn execute(command: SessionsCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = context.client()?;
    match command {
        SessionsCommand::List(arguments) => list::execute(&arguments, &client, context).await,
        SessionsCommand::Show(arguments) => show::execute(&arguments, &client, context).await,
    }
}
