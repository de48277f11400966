//! The tools of a request as a wire is told of them.

use serde_json::Value;

use super::{SchemaDialect, tool_input};
use crate::request::ModelRequest;
use crate::wire::ToolNames;

/// A tool on its way to a server.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredTool<'a> {
    /// Its name on the wire.
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: &'a str,
    /// What it takes, in the dialect of the wire.
    pub(crate) schema: Value,
}

/// Every tool of a request in a dialect. What is lost by it is traced.
pub(crate) fn declared<'a>(
    request: &'a ModelRequest,
    names: &ToolNames,
    dialect: SchemaDialect,
) -> Vec<DeclaredTool<'a>> {
    let declare = |tool: &'a crate::message::ToolSpec| {
        let normalised = tool_input(tool, dialect);
        for loss in &normalised.losses {
            tracing::debug!(%loss, ?dialect, "part of a tool's input schema is not sent to the model");
        }
        DeclaredTool { name: names.to_wire(&tool.name), description: &tool.description, schema: normalised.schema }
    };
    request.tools.iter().map(declare).collect()
}
