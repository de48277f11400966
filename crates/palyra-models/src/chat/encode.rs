//! The body of a chat-completions request.
//!
//! Servers differ in which optional fields they know. [`Dialect`] says which ones to send; it starts with the most widely
//! known form and is corrected by the refusals of the server at hand.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};

use crate::error::ModelError;
use crate::message::{Message, Role};
use crate::request::ModelRequest;
use crate::wire::ToolNames;

/// What a server has refused so far. Shared by all calls of a provider; only ever moves away from the first form.
#[derive(Debug, Default)]
pub(crate) struct Dialect {
    without_stream_options: AtomicBool,
    with_max_completion_tokens: AtomicBool,
}

impl Dialect {
    /// Learns from a refusal. Says whether the next request will look different.
    pub(crate) fn learn(&self, refusal: &ModelError) -> Learned {
        let text = refusal.message.to_ascii_lowercase();
        if !matches!(refusal.status, Some(400 | 404 | 415 | 422)) {
            return Learned::Nothing;
        }
        let flag = if text.contains("stream_options") || text.contains("include_usage") {
            &self.without_stream_options
        } else if text.contains("max_completion_tokens") && text.contains("max_tokens") {
            &self.with_max_completion_tokens
        } else {
            return Learned::Nothing;
        };
        if flag.swap(true, Ordering::Relaxed) { Learned::Nothing } else { Learned::Something }
    }
}

/// Whether a refusal taught something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learned {
    /// The next request will look different.
    Something,
    /// The same request would be sent again.
    Nothing,
}

/// The body for this request.
pub(crate) fn body(request: &ModelRequest, model: &str, names: &ToolNames, dialect: &Dialect) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("messages".to_owned(), request.messages.iter().map(|message| encode(message, names)).collect());
    body.insert("stream".to_owned(), true.into());
    if !dialect.without_stream_options.load(Ordering::Relaxed) {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    if let Some(limit) = request.max_output_tokens {
        let modern = dialect.with_max_completion_tokens.load(Ordering::Relaxed);
        let field = if modern { "max_completion_tokens" } else { "max_tokens" };
        body.insert(field.to_owned(), limit.into());
    }
    // An empty list of tools is refused by several servers.
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "function": {
                    "name": names.to_wire(&tool.name),
                    "description": tool.description,
                    "parameters": tool.input_schema,
                },
            })
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    Value::Object(body)
}

fn encode(message: &Message, names: &ToolNames) -> Value {
    match message.role {
        Role::System | Role::User => json!({ "role": message.role, "content": message.content }),
        Role::Tool => json!({
            "role": "tool",
            "tool_call_id": message.tool_call_id.as_deref().unwrap_or_default(),
            "content": message.content,
        }),
        Role::Assistant if message.tool_calls.is_empty() => json!({ "role": "assistant", "content": message.content }),
        Role::Assistant => {
            let calls: Vec<Value> = message
                .tool_calls
                .iter()
                .map(|call| {
                    json!({
                        "id": call.id,
                        "type": "function",
                        "function": { "name": names.to_wire(&call.name), "arguments": arguments(&call.arguments) },
                    })
                })
                .collect();
            let content = if message.content.is_empty() { Value::Null } else { message.content.as_str().into() };
            json!({ "role": "assistant", "content": content, "tool_calls": calls })
        }
    }
}

/// Arguments of an earlier call. Servers read them again and answer with an error if they are no JSON object, so what the
/// model got wrong goes back to it inside one.
fn arguments(written: &str) -> String {
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Object(_)) => written.to_owned(),
        Ok(_) | Err(_) => json!({ "malformed_arguments": written }).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::RunId;

    use super::*;
    use crate::error::ModelErrorClass;
    use crate::message::{ToolCallRequest, ToolSpec};
    use crate::request::Purpose;

    fn request() -> ModelRequest {
        let call = |id: &str, arguments: &str| ToolCallRequest {
            id: id.into(),
            name: "palyra.fs.read".into(),
            arguments: arguments.into(),
        };
        ModelRequest {
            model: "m".into(),
            messages: vec![
                Message::system("be good"),
                Message::user("read a"),
                Message::assistant("", vec![call("c1", r#"{"path":"a"}"#), call("c2", "oops")]),
                Message::tool_result("c1", "palyra.fs.read", "text"),
                Message::tool_error("c2", "palyra.fs.read", "error: not JSON"),
                Message::assistant("done", Vec::new()),
            ],
            tools: vec![ToolSpec {
                name: "palyra.fs.read".into(),
                description: "Reads".into(),
                input_schema: json!({"type": "object"}),
            }],
            max_output_tokens: Some(5),
            ..ModelRequest::new(RunId::from_u128(1), 1, Purpose::Turn, Vec::new())
        }
    }

    #[test]
    fn a_request_is_written_as_servers_expect_it() {
        let request = request();
        let body = body(&request, "m", &ToolNames::for_request(&request), &Dialect::default());
        assert_eq!(
            body,
            json!({
                "model": "m",
                "stream": true,
                "stream_options": {"include_usage": true},
                "max_tokens": 5,
                "messages": [
                    {"role": "system", "content": "be good"},
                    {"role": "user", "content": "read a"},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "c1", "type": "function",
                         "function": {"name": "palyra__fs__read", "arguments": "{\"path\":\"a\"}"}},
                        {"id": "c2", "type": "function",
                         "function": {"name": "palyra__fs__read", "arguments": "{\"malformed_arguments\":\"oops\"}"}},
                    ]},
                    {"role": "tool", "tool_call_id": "c1", "content": "text"},
                    {"role": "tool", "tool_call_id": "c2", "content": "error: not JSON"},
                    {"role": "assistant", "content": "done"},
                ],
                "tools": [{"type": "function", "function": {
                    "name": "palyra__fs__read", "description": "Reads", "parameters": {"type": "object"}}}],
            })
        );
    }

    #[test]
    fn refusals_teach_once() {
        let dialect = Dialect::default();
        let refusal = |text: &str| ModelError::new(ModelErrorClass::Permanent, text).status(400);
        assert_eq!(dialect.learn(&refusal("unknown model")), Learned::Nothing);
        assert_eq!(dialect.learn(&refusal("extra field: stream_options")), Learned::Something);
        assert_eq!(dialect.learn(&refusal("extra field: stream_options")), Learned::Nothing);
        let modern = refusal("'max_tokens' is not supported, use 'max_completion_tokens' instead");
        assert_eq!(dialect.learn(&modern), Learned::Something);
        let mut request = request();
        request.tools.clear();
        let body = body(&request, "m", &ToolNames::default(), &dialect);
        assert_eq!(body["max_completion_tokens"], 5);
        for absent in ["stream_options", "max_tokens", "tools"] {
            assert!(body.get(absent).is_none(), "{absent}");
        }
    }
}
