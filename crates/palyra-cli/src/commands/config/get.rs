//! `palyra config get KEY`.

use palyra_common::config;

use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(key: &str, context: &Context) -> Result<(), CliError> {
    let entry = config::load(&context.environment)?.explain(key)?;
    if context.console.is_text() {
        context.console.line(&entry.value.to_string())
    } else {
        context.console.document(&entry.value)
    }
}
