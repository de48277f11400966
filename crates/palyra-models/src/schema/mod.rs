//! JSON Schemas as each wire accepts them.
//!
//! Every schema that leaves the process goes through here, whoever wrote it: built-in tools, skills, MCP servers, clients, answers of a
//! given shape. No two servers accept the same part of JSON Schema, and several refuse the whole request over one keyword, so a schema is
//! read once into a [`Node`](node::Node) (`read`: references expanded, `allOf` merged) and written in a [`Dialect`] (`write`, `open_api`),
//! which lists what a wire accepts. What the dialect cannot say is left out and recorded as a [`SchemaLoss`].
//!
//! INVARIANT: leaving out only ever widens. Whatever the original accepts, the written schema accepts, so a model is never kept from a valid
//! call. The full schema is enforced when the call comes in; nothing here replaces that check. `strict` is the exception by design:
//! it decides whether an answer can be held to its schema by the provider, and gives none where the meaning would change.

mod declared;
mod dialect;
mod loss;
mod node;
mod open_api;
mod read;
mod refused;
mod strict;
mod write;

use serde_json::Value;

pub use self::dialect::SchemaDialect;
pub use self::loss::SchemaLoss;

pub(crate) use self::declared::{DeclaredTool, declared};
pub(crate) use self::refused::name_refused_tools;
pub(crate) use self::strict::{anthropic_answer, openai_answer};

use crate::message::ToolSpec;

/// A schema in a dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Normalised {
    /// What is sent.
    pub(crate) schema: Value,
    /// What is not.
    pub(crate) losses: Vec<SchemaLoss>,
}

/// The input schema of a tool. Its root is an object, since arguments always are.
pub(crate) fn tool_input(tool: &ToolSpec, dialect: SchemaDialect) -> Normalised {
    input(&tool.name, &tool.input_schema, dialect)
}

/// The schema of an answer.
pub(crate) fn answer(schema: &Value, dialect: SchemaDialect) -> Value {
    let (node, _) = read::read(schema);
    match dialect {
        SchemaDialect::GeminiOpenApi => open_api::write(&node, &mut Vec::new()),
        _ => write::write(&node, dialect, &mut Vec::new()),
    }
}

fn input(tool: &str, schema: &Value, dialect: SchemaDialect) -> Normalised {
    let (node, mut losses) = read::read(schema);
    let node = node.into_arguments(&mut losses);
    let schema = match dialect {
        SchemaDialect::GeminiOpenApi => open_api::write(&node, &mut losses),
        _ => {
            let mut schema = write::write(&node, dialect, &mut losses);
            // Arguments are listed, also where there are none.
            if let Some(fields) = schema.as_object_mut() {
                fields.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
            }
            schema
        }
    };
    losses.sort();
    losses.dedup();
    let losses = losses.into_iter().map(|dropped| SchemaLoss::new(tool, dropped)).collect();
    Normalised { schema, losses }
}

/// What the given tools lose in a dialect, for people.
#[must_use]
pub fn schema_losses(tools: &[ToolSpec], dialect: SchemaDialect) -> Vec<SchemaLoss> {
    tools.iter().flat_map(|tool| tool_input(tool, dialect).losses).collect()
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "widening_tests.rs"]
mod widening;
