//! `palyra approvals …`: questions that runs ask before they act, the answers, and what was agreed to for longer.
//!
//! The desk at which questions are answered is shared with `palyra run`.

mod answer;
mod decide;
pub(super) mod desk;
mod keyboard;
mod list;
mod patterns;
mod revoke;
mod show;
mod watch;
mod which;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
A run asks before an effect that you did not clearly request, above all when text that someone
else wrote, or the model itself, chose where the effect goes. The question names the value, its
source and the sentence it was found in. Ask yourself whether *you* would have chosen that value.

No flag skips approvals. An answer covers exactly the call it shows, unless you allow the pattern
that is offered with it; patterns can be listed and revoked. To be asked less, name recipients,
hosts and paths in the task itself: what you wrote needs no question, except shell scripts.

APPROVAL is an id, its beginning or its end.

Examples:
  palyra approvals list                                what waits for you
  palyra approvals show 4P5Q                           everything about one question
  palyra approvals decide 4P5Q allow                   this call, once
  palyra approvals decide 4P5Q allow --scope session   and calls like it in this session
  palyra approvals watch                               answer questions of all runs as they come
  palyra approvals patterns                            what you allowed for longer
  palyra approvals revoke 4P5Q                         take that back";

/// What to do with approvals.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ApprovalsCommand {
    /// List open questions, oldest first
    List(list::ListArguments),
    /// Show one question: its values and their sources, the arguments, the pattern on offer, the answer
    Show(show::ShowArguments),
    /// Answer a question
    Decide(decide::DecideArguments),
    /// Watch for questions of all runs and answer them at the terminal; Ctrl-C leaves
    Watch(watch::WatchArguments),
    /// List patterns that were allowed for longer than once, newest first
    Patterns(patterns::PatternsArguments),
    /// Revoke a pattern; calls like it are asked about again
    Revoke(revoke::RevokeArguments),
}

pub(super) async fn execute(command: ApprovalsCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = launcher::connect(context).await?;
    match command {
        ApprovalsCommand::List(arguments) => list::execute(&arguments, &client, context).await,
        ApprovalsCommand::Show(arguments) => show::execute(&arguments, &client, context).await,
        ApprovalsCommand::Decide(arguments) => decide::execute(&arguments, &client, context).await,
        ApprovalsCommand::Watch(arguments) => watch::execute(&arguments, &client, context).await,
        ApprovalsCommand::Patterns(arguments) => patterns::execute(&arguments, &client, context).await,
        ApprovalsCommand::Revoke(arguments) => revoke::execute(&arguments, &client, context).await,
    }
}
