//! `palyra files …`.

mod endorse;
mod labels;
mod offer;
mod show;

use std::path::PathBuf;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

pub(super) use self::offer::offer_instructions;
pub(super) use self::show::ask;

const EXAMPLES: &str = "\
What a run writes after it has read untrusted text is untrusted in every later run, under any name, until a person has looked at it. So is what others
wrote: dependencies, downloads, and clones of repositories that `workspaces.trusted` does not name. Instruction files such as AGENTS.md are followed
once a person has endorsed them.

Examples:
  palyra files labels
  palyra files endorse
  palyra files endorse AGENTS.md";

/// What to do with files that are not trusted.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum FilesCommand {
    /// List files whose content is not trusted, with the run that wrote each, and what a directory's instruction files count for
    Labels(labels::LabelsArguments),
    /// Show files and, if you agree, trust their present content from now on
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
