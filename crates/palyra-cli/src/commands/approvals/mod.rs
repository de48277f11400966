//! `palyra approvals …`.

mod decide;
mod list;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
There is no flag that skips approvals: each is about exactly the call it shows.

Examples:
  palyra approvals list
  palyra approvals decide 01JC0Q6F7Z8G9H0J1K2M3N4P5Q allow";

/// What to do with approvals.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ApprovalsCommand {
    /// List questions that wait for an answer, oldest first
    List(list::ListArguments),
    /// Answer a question
    Decide(decide::DecideArguments),
}

pub(super) async fn execute(command: ApprovalsCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = context.client()?;
    match command {
        ApprovalsCommand::List(arguments) => list::execute(&arguments, &client, context).await,
        ApprovalsCommand::Decide(arguments) => decide::execute(&arguments, &client, context).await,
    }
}
