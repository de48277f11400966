//! `palyra config path`.

use palyra_common::paths;
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(context: &Context) -> Result<(), CliError> {
    let path = paths::config_to_edit(&context.environment)?;
    if context.console.is_text() {
        context.console.line(&path.display().to_string())?;
        if !path.exists() {
            context.console.remark("(it does not exist yet; `palyra config set` creates it)");
        }
        Ok(())
    } else {
        context.console.document(&json!({ "path": path, "exists": path.exists() }))
    }
}
