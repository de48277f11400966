//! `palyra files …`.

mod endorse;
mod labels;

use std::path::PathBuf;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
What a run writes after it has read untrusted text is untrusted in every later run, under any name, until a person has looked at it.

Examples:
  palyra files labels
  palyra files endorse AGENTS.md";

/// What to do with files that are not trusted.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum FilesCommand {
    /// List files whose content is not trusted, with the run that wrote each
    Labels(labels::LabelsArguments),
    /// Show a file and, if you agree, trust its present content from now on
    Endorse(endorse::EndorseArguments),
}

pub(super) async fn execute(command: FilesCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        FilesCommand::Labels(arguments) => {
            labels::execute(arguments, &launcher::connect(context).await?, context).await
        }
        FilesCommand::Endorse(arguments) => endorse::execute(arguments, context).await,
    }
}

/// A path without links as the daemon takes it.
fn absolute(path: PathBuf) -> String {
    path.canonicalize().or_else(|_| std::path::absolute(&path)).unwrap_or(path).display().to_string()
}
