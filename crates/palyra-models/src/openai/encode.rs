//! The body of a Responses request.
//!
//! The conversation is a list of items: messages, calls, results, and what the model thought, each in its place. Nothing is stored at
//! the provider, so thoughts travel sealed; those that came without a seal cannot be given back and are left out.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::items::{ORIGIN, thought_item};
use crate::chat::{Lacks, arguments, data_url, named_schema};
use crate::message::{Message, Role};
use crate::part::{Part, PartKind};
use crate::reasoning::ReasoningBlock;
use crate::request::{ModelRequest, OutputShape, ToolChoice};
use crate::schema::{SchemaDialect, declared};
use crate::wire::ToolNames;

/// The body for this request.
pub(super) fn body(
    request: &ModelRequest,
    model: &str,
    names: &ToolNames,
    lacks: &BTreeSet<Lacks>,
    schemas: SchemaDialect,
) -> Value {
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    put("model", model.into());
    let mut input = Vec::with_capacity(request.messages.len());
    for message in request.messages.iter() {
        write(message, model, names, lacks, &mut input);
    }
    put("input", input.into());
    put("stream", true.into());
    put("store", false.into());
    if !lacks.contains(&Lacks::SealedReasoning) {
        put("include", json!(["reasoning.encrypted_content"]));
    }
    if !lacks.contains(&Lacks::CacheKey) {
        put("prompt_cache_key", request.run_id.to_string().into());
    }
    if let Some(limit) = request.max_output_tokens {
        put("max_output_tokens", limit.into());
    }
    if !request.tools.is_empty() {
        let tools = declared(request, names, schemas).into_iter().map(|tool| {
            // Strict by default here, which would refuse every schema with an optional property.
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": false,
            })
        });
        put("tools", tools.collect());
        if request.tool_choice != ToolChoice::Auto && !lacks.contains(&Lacks::ToolChoice) {
            put("tool_choice", request.tool_choice.as_str().into());
        }
    }
    if let OutputShape::Json { name, schema } = &request.output
        && !lacks.contains(&Lacks::ResponseFormat)
    {
        let format = if lacks.contains(&Lacks::JsonSchema) {
            json!({ "type": "json_object" })
        } else {
            let mut format = named_schema(name, schema, schemas);
            format.insert("type".to_owned(), "json_schema".into());
            Value::Object(format)
        };
        put("text", json!({ "format": format }));
    }
    if let Some(effort) = request.effort.filter(|_| !lacks.contains(&Lacks::Effort)) {
        put("reasoning", json!({ "effort": effort.as_str(), "summary": "auto" }));
    }
    Value::Object(body)
}

/// Adds the items of one message.
fn write(message: &Message, model: &str, names: &ToolNames, lacks: &BTreeSet<Lacks>, input: &mut Vec<Value>) {
    match message.role {
        Role::System => input.push(json!({
            "type": "message", "role": "system", "content": [{ "type": "input_text", "text": message.content }],
        })),
        Role::User => {
            input.push(
                json!({ "type": "message", "role": "user", "content": content(&message.content, &message.parts) }),
            );
        }
        Role::Tool => {
            let output = if message.parts.is_empty() {
                Value::String(message.content.clone())
            } else {
                content(&message.content, &message.parts)
            };
            let call_id = message.tool_call_id.as_deref().unwrap_or_default();
            input.push(json!({ "type": "function_call_output", "call_id": call_id, "output": output }));
        }
        Role::Assistant => assistant(message, model, names, lacks, input),
    }
}

/// Text, calls and thoughts of an assistant, in the order in which they came.
fn assistant(message: &Message, model: &str, names: &ToolNames, lacks: &BTreeSet<Lacks>, input: &mut Vec<Value>) {
    let usable = |block: &&ReasoningBlock| block.origin == ORIGIN && !lacks.contains(&Lacks::SealedReasoning);
    let thoughts: Vec<(u32, AfterText, Value)> = message
        .reasoning
        .iter()
        .filter(usable)
        .filter_map(|block| thought_item(block, model).map(|(after, item)| (block.position, after, item)))
        .collect();
    let at = |position: u32, after: AfterText| {
        thoughts.iter().filter(move |known| known.0 == position && known.1 == after).map(|known| known.2.clone())
    };
    let mut calls = message.tool_calls.iter();
    // A thought without anything behind it is refused, so the last ones of a turn that says nothing more are dropped.
    if !message.content.is_empty() {
        input.extend(at(0, AfterText::No));
        input.push(json!({
            "type": "message", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": message.content, "annotations": [] }],
        }));
    }
    for (position, call) in (0_u32..).zip(&mut calls) {
        if position > 0 || message.content.is_empty() {
            input.extend(at(position, AfterText::No));
        }
        input.extend(at(position, AfterText::Yes));
        input.push(json!({
            "type": "function_call",
            "call_id": call.id,
            "name": names.to_wire(&call.name),
            "arguments": arguments(&call.arguments),
        }));
    }
}

/// Whether a thought came after the text of its turn had begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterText {
    Yes,
    No,
}

fn content(text: &str, parts: &[Part]) -> Value {
    let mut content = Vec::with_capacity(parts.len() + 1);
    if !text.is_empty() || parts.is_empty() {
        content.push(json!({ "type": "input_text", "text": text }));
    }
    content.extend(parts.iter().map(|part| match part.kind {
        PartKind::Image => json!({ "type": "input_image", "image_url": data_url(part) }),
        PartKind::File => json!({
            "type": "input_file",
            "filename": part.name.as_deref().unwrap_or("file"),
            "file_data": data_url(part),
        }),
    }));
    content.into()
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
