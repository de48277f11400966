//! `palyra policy lint`.

use std::path::PathBuf;

use clap::Args;
use palyra_common::ExitCode;
use palyra_policy::KnownEntities;

use super::sets;
use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;

/// What to look at.
#[derive(Debug, Args)]
pub(crate) struct LintArguments {
    /// A directory or file instead of the policies in force
    #[arg(value_name = "PROPOSAL")]
    proposal: Option<PathBuf>,
}

pub(super) fn execute(arguments: &LintArguments, context: &Context) -> Result<ExitCode, CliError> {
    let set = sets::chosen(arguments.proposal.as_deref(), context)?;
    // Which tools and hosts exist is known to a daemon alone, so names are not checked here.
    let findings = palyra_policy::lint(&set, &KnownEntities::new())?;
    let console = &context.console;
    if console.is_text() {
        for finding in &findings {
            let line = format!("{}: {}: {} [{}]", finding.at, finding.policy, finding.message, finding.rule);
            console.line(&one_line(&line))?;
        }
        if findings.is_empty() {
            console.line("no warnings")?;
        }
    } else {
        console.list(&findings, &findings)?;
    }
    Ok(if findings.is_empty() { ExitCode::Ok } else { ExitCode::Precondition })
}
