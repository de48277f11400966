//! `palyra mcp remove NAME`.

use palyra_common::ExitCode;
use palyra_mcp::ServerName;

use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(name: &ServerName, context: &Context) -> Result<ExitCode, CliError> {
    super::registry(context)?.remove(name)?;
    if context.console.is_text() {
        context.console.line(&format!("Removed `{name}`"))?;
    } else {
        context.console.document(&serde_json::json!({ "name": name }))?;
    }
    Ok(ExitCode::Ok)
}
