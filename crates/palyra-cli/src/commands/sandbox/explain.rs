//! `palyra sandbox explain`.

use palyra_common::ExitCode;
use palyra_sandbox::{explain, host_facts};

use super::launcher;
use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(context: &Context) -> Result<ExitCode, CliError> {
    let host = host_facts(&launcher())?;
    let explanation = explain(&host);
    if context.console.is_text() {
        explanation.to_string().lines().try_for_each(|line| context.console.line(line))?;
    } else {
        context.console.document(&explanation)?;
    }
    Ok(ExitCode::Ok)
}
