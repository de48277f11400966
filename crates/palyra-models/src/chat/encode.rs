//! The body of a chat-completions request.
//!
//! Everything that was asked for is said, except what this model is known not to know; see `dialect`.

use serde_json::{Map, Value, json};

use super::content::Writer;
use super::dialect::Lacks;
use super::habits::{EffortField, LengthField};
use super::schema;
use crate::request::{ModelRequest, OutputShape, ToolChoice};
use crate::schema::declared;

/// The body for this request.
pub(super) fn body(request: &ModelRequest, writer: &Writer<'_>) -> Value {
    let Writer { habits, lacks, model, names, .. } = writer;
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    put("model", (*model).into());
    put("messages", writer.messages(request).into());
    put("stream", true.into());
    if !lacks.contains(&Lacks::StreamOptions) {
        put("stream_options", json!({ "include_usage": true }));
    }
    if let Some(limit) = request.max_output_tokens {
        let newer = match habits.length {
            LengthField::MaxTokens => lacks.contains(&Lacks::MaxTokens),
            LengthField::MaxCompletionTokens => !lacks.contains(&Lacks::MaxCompletionTokens),
        };
        put(if newer { "max_completion_tokens" } else { "max_tokens" }, limit.into());
    }
    // An empty list of tools is refused by several servers.
    if !request.tools.is_empty() {
        let tools = declared(request, names, habits.schemas).into_iter().map(|tool| {
            json!({
                "type": "function",
                "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema },
            })
        });
        put("tools", tools.collect());
        // As it sees fit is what every server does when nothing is said.
        if request.tool_choice != ToolChoice::Auto && !lacks.contains(&Lacks::ToolChoice) {
            put("tool_choice", request.tool_choice.as_str().into());
        }
    }
    if let OutputShape::Json { name, schema } = &request.output
        && !lacks.contains(&Lacks::ResponseFormat)
    {
        let plain = lacks.contains(&Lacks::JsonSchema);
        let format = if plain {
            json!({ "type": "json_object" })
        } else {
            schema::response_format(name, schema, habits.schemas)
        };
        put("response_format", format);
    }
    if let Some(effort) = request.effort.filter(|_| !lacks.contains(&Lacks::Effort)) {
        match habits.effort {
            EffortField::Flat => put("reasoning_effort", effort.as_str().into()),
            EffortField::Nested => put("reasoning", json!({ "effort": effort.as_str() })),
        };
    }
    (habits.finish)(&mut body, request, model);
    if lacks.contains(&Lacks::CacheKey) {
        body.remove("prompt_cache_key");
    }
    Value::Object(body)
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
