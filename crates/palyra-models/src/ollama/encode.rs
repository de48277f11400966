//! From a request to the body of an `/api/chat` call.
//!
//! The server has no way to demand a call, so that is said in words; tools that may not be called are not mentioned. It
//! would silently forget the beginning of a conversation that does not fit: it is told not to.

use serde_json::{Map, Value, json};

use super::ORIGIN;
use crate::attachment;
use crate::message::{Message, Role};
use crate::part::{Part, PartKind};
use crate::request::{ModelRequest, OutputShape, ReasoningEffort, ToolChoice};
use crate::schema::{SchemaDialect, answer, declared};
use crate::wire::ToolNames;

/// How long the server keeps the model loaded after the call: a person's pause between two turns.
const KEEP_ALIVE: &str = "10m";
/// Stands at the end of a conversation in which a tool has to be called.
const CALL_A_TOOL: &str = "Answer with a call of one of the tools.";

/// The server is built on llama.cpp.
pub(super) const SCHEMAS: SchemaDialect = SchemaDialect::Portable;

/// What the model at hand is known not to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Thinking {
    /// It may be told how much to think.
    #[default]
    May,
    /// It may not.
    MayNot,
}

/// The body for this request.
pub(super) fn body(
    request: &ModelRequest,
    model: &str,
    names: &ToolNames,
    context_tokens: u32,
    thinking: Thinking,
) -> Value {
    let mut messages: Vec<Value> = request.messages.iter().map(|message| encode(message, names)).collect();
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("stream".to_owned(), true.into());
    body.insert("keep_alive".to_owned(), KEEP_ALIVE.into());
    body.insert("truncate".to_owned(), false.into());
    let mut options = Map::new();
    if context_tokens > 0 {
        options.insert("num_ctx".to_owned(), context_tokens.into());
    }
    if let Some(limit) = request.max_output_tokens {
        options.insert("num_predict".to_owned(), limit.max(1).into());
    }
    body.insert("options".to_owned(), Value::Object(options));
    if !request.tools.is_empty() && request.tool_choice != ToolChoice::Forbidden {
        let tools = declared(request, names, SCHEMAS).into_iter().map(|tool| {
            json!({
                "type": "function",
                "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema },
            })
        });
        body.insert("tools".to_owned(), tools.collect());
        if request.tool_choice == ToolChoice::Required {
            messages.push(json!({ "role": "system", "content": CALL_A_TOOL }));
        }
    }
    body.insert("messages".to_owned(), messages.into());
    if let OutputShape::Json { schema, .. } = &request.output {
        body.insert("format".to_owned(), answer(schema, SCHEMAS));
    }
    if let Some(effort) = request.effort.filter(|_| thinking == Thinking::May) {
        body.insert("think".to_owned(), think(model, effort));
    }
    Value::Object(body)
}

/// Most models can only be told whether to think; one family knows how much, and cannot be told not to.
fn think(model: &str, effort: ReasoningEffort) -> Value {
    let levels = model.rsplit('/').next().is_some_and(|name| name.starts_with("gpt-oss"));
    match (levels, effort) {
        (true, ReasoningEffort::Minimal | ReasoningEffort::Low) => "low".into(),
        (true, ReasoningEffort::Medium) => "medium".into(),
        (true, ReasoningEffort::High) => "high".into(),
        (false, effort) => (effort != ReasoningEffort::Minimal).into(),
    }
}

fn encode(message: &Message, names: &ToolNames) -> Value {
    let mut fields = Map::new();
    fields.insert("role".to_owned(), json!(message.role));
    let (images, others): (Vec<&Part>, Vec<&Part>) =
        message.parts.iter().partition(|part| part.kind == PartKind::Image);
    let mut content = message.content.clone();
    for part in others {
        if !content.is_empty() {
            content.push_str("\n\n");
        }
        content.push_str(&attachment::in_words(part));
    }
    fields.insert("content".to_owned(), content.into());
    if !images.is_empty() {
        fields.insert("images".to_owned(), images.iter().map(|part| Value::from(&*part.data)).collect());
    }
    match message.role {
        Role::Assistant => {
            let thought: String = message
                .reasoning
                .iter()
                .filter(|block| block.origin == ORIGIN)
                .map(|block| block.text.as_str())
                .collect();
            if !thought.is_empty() {
                fields.insert("thinking".to_owned(), thought.into());
            }
            if !message.tool_calls.is_empty() {
                let calls = message.tool_calls.iter().map(|call| {
                    json!({
                        "id": call.id,
                        "function": { "name": names.to_wire(&call.name), "arguments": arguments(&call.arguments) },
                    })
                });
                fields.insert("tool_calls".to_owned(), calls.collect());
            }
        }
        Role::Tool => {
            if let Some(name) = &message.name {
                fields.insert("tool_name".to_owned(), names.to_wire(name).into());
            }
            if let Some(id) = &message.tool_call_id {
                fields.insert("tool_call_id".to_owned(), id.as_str().into());
            }
        }
        Role::System | Role::User => {}
    }
    Value::Object(fields)
}

/// The arguments of an earlier call. They have to be an object: what the model got wrong goes back to it inside one.
fn arguments(written: &str) -> Value {
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        Ok(_) | Err(_) => json!({ "malformed_arguments": written }),
    }
}
