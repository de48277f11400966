//! `palyra auxiliary …`.

mod list;
mod run;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
Kinds: summary, recall_search, classification, extraction, objective_judge, vision. docs/auxiliary.md describes the input
and output of each.

Examples:
  echo '{\"text\":\"late again\",\"labels\":[\"glad\",\"cross\"]}' | palyra auxiliary run classification --input -
  palyra auxiliary run summary --input text.json
  palyra auxiliary list --state failed";

/// What to do with auxiliary tasks.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum AuxiliaryCommand {
    /// Give a task to a model without tools, and print its validated output
    Run(run::RunArguments),
    /// List tasks, newest first
    List(list::ListArguments),
}

pub(super) async fn execute(command: AuxiliaryCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = launcher::connect(context).await?;
    match command {
        AuxiliaryCommand::Run(arguments) => run::execute(arguments, &client, context).await,
        AuxiliaryCommand::List(arguments) => list::execute(&arguments, &client, context).await,
    }
}
