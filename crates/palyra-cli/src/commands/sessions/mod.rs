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
    /// List sessions, newest activity first
    List(list::ListArguments),
    /// Show one session with its runs
    Show(show::ShowArguments),
    /// Begin a session without a run
    New(change::NewArguments),
    /// Give a session another title
    Rename(change::RenameArguments),
    /// Put a session away: it can be read and takes no new runs
    Archive(change::SessionArgument),
    /// Take a session out of the archive
    Restore(change::SessionArgument),
    /// Begin a session from a point in another
    Fork(change::ForkArguments),
    /// Write a session down as one document
    Export(look::ExportArguments),
    /// Say how a session came to be as it is
    Explain(change::SessionArgument),
    /// Write to a session: begins, steers or interrupts a run, or waits
    Send(input::SendArguments),
    /// List what waits in a session
    Queue(change::SessionArgument),
    /// Take back something that waits
    Withdraw(input::WithdrawArguments),
    /// Find what was asked and answered before, in your own sessions
    Recall(recall::RecallArguments),
    /// Shorten what later runs know of the earlier ones
    Compact(change::CompactArguments),
}

pub(super) async fn execute(command: SessionsCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = context.client()?;
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
