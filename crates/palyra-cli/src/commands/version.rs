//! `palyra version`.

use palyra_common::{BuildInfo, ExitCode};

use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(context: &Context) -> Result<ExitCode, CliError> {
    let build = BuildInfo::current();
    if context.console.is_text() {
        context.console.line(&format!("palyra {}", build.line()))?;
    } else {
        context.console.document(&build)?;
    }
    Ok(ExitCode::Ok)
}
