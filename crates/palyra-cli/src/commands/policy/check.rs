//! `palyra policy check`.

use std::path::PathBuf;

use clap::Args;
use palyra_common::ExitCode;
use serde_json::json;

use super::sets;
use crate::context::Context;
use crate::error::CliError;

/// What to check.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// A directory or file instead of the policies in force
    #[arg(value_name = "PROPOSAL")]
    proposal: Option<PathBuf>,
}

pub(super) fn execute(arguments: &CheckArguments, context: &Context) -> Result<ExitCode, CliError> {
    let set = sets::chosen(arguments.proposal.as_deref(), context)?;
    let (policies, templates) = (set.entries().count(), set.templates().count());
    let console = &context.console;
    if console.is_text() {
        console.line(&format!("OK: {policies} policies and {templates} templates (set {})", set.digest()))?;
    } else {
        console.document(&json!({ "policies": policies, "templates": templates, "policy_set": set.digest() }))?;
    }
    Ok(ExitCode::Ok)
}
