//! `palyra policy diff`.

use std::path::PathBuf;

use clap::Args;
use palyra_common::ExitCode;

use super::sets;
use crate::console::plain;
use crate::context::Context;
use crate::error::CliError;

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The directory or file to compare the policies in force with
    #[arg(value_name = "PROPOSAL")]
    proposal: PathBuf,
}

pub(super) fn execute(arguments: &DiffArguments, context: &Context) -> Result<ExitCode, CliError> {
    let difference = palyra_policy::diff(&sets::in_force(context)?, &sets::proposed(&arguments.proposal, context)?)?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&difference, &difference.changes)?;
    } else if difference.is_empty() {
        console.line("no differences")?;
    } else {
        console.piece(&plain(&difference.to_string()))?;
    }
    Ok(ExitCode::Ok)
}
