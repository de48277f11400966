//! `palyra completions SHELL`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use palyra_common::ExitCode;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
Examples:
  palyra completions bash > ~/.local/share/bash-completion/completions/palyra
  palyra completions zsh > \"${fpath[1]}/_palyra\"
  palyra completions fish > ~/.config/fish/completions/palyra.fish";

/// Which shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// The shell that will read the script
    shell: Shell,
}

pub(super) fn execute(arguments: &CompletionsArguments, context: &Context) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "palyra", &mut script);
    context.console.piece(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Ok)
}
