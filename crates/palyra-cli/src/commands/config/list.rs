//! `palyra config list`.

use palyra_common::config;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::shortened;

pub(super) fn execute(context: &Context) -> Result<(), CliError> {
    let loaded = config::load(&context.environment)?;
    let entries = loaded.list();
    if !context.console.is_text() {
        return context.console.list(&entries, &entries);
    }
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| {
            [entry.key.to_owned(), shortened(&entry.value.to_string(), 48), shortened(&entry.source.to_string(), 100)]
        })
        .collect();
    table::lines(["KEY", "VALUE", "FROM"], &rows).iter().try_for_each(|line| context.console.line(line))?;
    for warning in loaded.warnings() {
        context.console.remark(&format!("warning: {warning}"));
    }
    Ok(())
}
