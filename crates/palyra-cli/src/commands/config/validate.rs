//! `palyra config validate`.

use palyra_common::config;
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(context: &Context) -> Result<(), CliError> {
    let loaded = config::load(&context.environment)?;
    if !context.console.is_text() {
        return context
            .console
            .document(&json!({ "valid": true, "file": loaded.file(), "warnings": loaded.warnings() }));
    }
    for warning in loaded.warnings() {
        context.console.remark(&format!("warning: {warning}"));
    }
    context.console.line(&match loaded.file() {
        Some(file) => format!("OK: `{}` is valid", file.display()),
        None => "OK: no configuration file; environment and defaults are valid".to_owned(),
    })
}
