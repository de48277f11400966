//! `palyra journal restore DIR`.

use std::path::PathBuf;

use clap::Args;
use palyra_common::{Clock as _, ExitCode, SystemClock};

use crate::context::Context;
use crate::error::CliError;

/// Where from.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// A directory created by `palyra journal backup`
    #[arg(value_name = "DIR")]
    from: PathBuf,
}

pub(super) fn execute(arguments: &RestoreArguments, context: &Context) -> Result<ExitCode, CliError> {
    let from = context.environment.absolute(&arguments.from);
    context.console.progress("verifying and restoring…");
    let report = palyra_journal::restore(&from, context.state_root()?, SystemClock.now())?;
    if context.console.is_text() {
        context.console.line(&format!("Restored {} records to `{}`", report.records, report.path.display()))?;
        if !report.left_out.is_empty() {
            context.console.remark(&format!("not in the backup: {}", report.left_out.join(", ")));
        }
        context.console.remark(
            "work that was in progress waits; check what happened after the backup, then: palyra journal accept-restore",
        );
    } else {
        context.console.document(&report)?;
    }
    Ok(ExitCode::Ok)
}
