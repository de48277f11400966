//! `palyra mcp list`.

use palyra_common::ExitCode;
use palyra_mcp::ReviewState;
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::shortened;

pub(super) fn execute(context: &Context) -> Result<ExitCode, CliError> {
    let registry = super::registry(context)?;
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for server in registry.servers() {
        let name = server.name();
        let pins = registry.pins(name);
        let classification = registry.classification(name).map(|file| match file.review() {
            _ if file.tools.is_empty() => "none",
            ReviewState::Proposed => "not reviewed",
            ReviewState::Reviewed => "reviewed",
        });
        let pinned = pins.as_ref().map_or_else(|_| "unreadable".to_owned(), |pins| pins.tools.len().to_string());
        let reviewed = classification.as_ref().map_or("unreadable", |state| state);
        rows.push([name.to_string(), pinned, reviewed.to_owned(), shortened(&server.config().summary(), 80)]);
        documents.push(json!({
            "name": name, "where": server.config().summary(), "pinned": pins.ok().map(|pins| pins.tools),
            "classification": reviewed,
        }));
    }
    if !context.console.is_text() {
        context.console.list(&documents, &documents)?;
    } else if rows.is_empty() {
        context.console.line("no MCP servers; add one with: palyra mcp add NAME -- COMMAND")?;
    } else {
        let lines = table::lines(["NAME", "PINNED TOOLS", "CLASSIFICATION", "WHERE"], &rows);
        lines.iter().try_for_each(|line| context.console.line(line))?;
    }
    Ok(ExitCode::Ok)
}
