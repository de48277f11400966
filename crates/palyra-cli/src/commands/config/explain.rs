//! `palyra config explain KEY`.

use palyra_common::config;
use palyra_common::config::Restart;

use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(key: &str, context: &Context) -> Result<(), CliError> {
    let entry = config::load(&context.environment)?.explain(key)?;
    let console = &context.console;
    if !console.is_text() {
        return console.document(&entry);
    }
    console.line(&format!("{} = {}", entry.key, entry.value))?;
    console.line(&format!("  from      {}", entry.source))?;
    console.line(&format!("  default   {}", entry.default))?;
    console.line(&format!("  expects   {}", entry.expected))?;
    console.line(&format!("  env       {}", entry.environment_variables.join(", ")))?;
    console.line(match entry.restart {
        Restart::Needed => "  change    takes effect when the daemon restarts",
        Restart::NotNeeded => "  change    takes effect for the next command or run",
    })?;
    console.line(&format!("  {}", entry.doc))
}
