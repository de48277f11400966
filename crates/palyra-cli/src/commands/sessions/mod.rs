//! `palyra sessions …`.

mod change;
mod input;
mod list;
mod look;
mod recall;
mod show;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
SESSION is an id, its beginning or its end, a key, or `last`.

Examples:
  palyra sessions list
  palyra sessions send last --mode steer \"look at the tests as well\"
  palyra sessions fork last --run 3XK9 --title \"another way\"
  palyra sessions export last > session.md
  palyra sessions recall \"which port did we choose for the tests?\"
  palyra run --session last \"and now the other file\"";

/// What to do with sessions.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SessionsCommand {
    /// List sessions, most recently active first
    List(list::ListArguments),
    /// Show one session with its runs
    Show(show::ShowArguments),
    /// Create a session without a run
    New(change::NewArguments),
    /// Rename a session
    Rename(change::RenameArguments),
    /// Archive a session: it stays readable and takes no new runs
    Archive(change::SessionArgument),
    /// Restore an archived session
    Restore(change::SessionArgument),
    /// Fork a session at a point of its history
    Fork(change::ForkArguments),
    /// Export a session as one document
    Export(look::ExportArguments),
    /// Explain how a session came to its present state
    Explain(change::SessionArgument),
    /// Send a message to a session: it starts, steers or interrupts a run, or is queued
    Send(input::SendArguments),
    /// List queued messages
    Queue(change::SessionArgument),
    /// Withdraw a queued message
    Withdraw(input::WithdrawArguments),
    /// Search your own sessions for what was asked and answered
    Recall(recall::RecallArguments),
    /// Summarise earlier exchanges for later runs
    Compact(change::CompactArguments),
}

pub(super) async fn execute(command: SessionsCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = launcher::connect(context).await?;
    match command {
        SessionsCommand::List(arguments) => list::execute(&arguments, &client, context).await,
        SessionsCommand::Show(arguments) => show::execute(&arguments, &client, context).await,
        SessionsCommand::New(arguments) => change::new(arguments, &client, context).await,
        SessionsCommand::Rename(arguments) => change::rename(arguments, &client, context).await,
        SessionsCommand::Archive(arguments) => {
            change::archive(&arguments, change::Archive::Away, &client, context).await
        }
        SessionsCommand::Restore(arguments) => {
            change::archive(&arguments, change::Archive::Back, &client, context).await
        }
        SessionsCommand::Fork(arguments) => change::fork(arguments, &client, context).await,
        SessionsCommand::Export(arguments) => look::export(&arguments, &client, context).await,
        SessionsCommand::Explain(arguments) => look::explain(&arguments, &client, context).await,
        SessionsCommand::Send(arguments) => input::send(arguments, &client, context).await,
        SessionsCommand::Queue(arguments) => look::queue(&arguments, &client, context).await,
        SessionsCommand::Withdraw(arguments) => input::withdraw(arguments, &client, context).await,
        SessionsCommand::Recall(arguments) => recall::execute(&arguments, &client, context).await,
        SessionsCommand::Compact(arguments) => change::compact(&arguments, &client, context).await,
    }
}
