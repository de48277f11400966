//! Ollama's chat, from the server's side.

use serde_json::{Map, Value, json};

use super::said::{Said, SaidCall, StreamForm, Wire, WireEvent};
use crate::event::StopReason;

/// Ollama's chat.
#[derive(Debug, Clone, Copy)]
pub struct OllamaWire;

impl Wire for OllamaWire {
    fn answers(&self, path: &str) -> bool {
        path.ends_with("/api/chat")
    }

    fn events(&self, said: &Said) -> Vec<WireEvent> {
        let mut lines: Vec<Value> = said.deltas.iter().map(|text| line(text, &[])).collect();
        lines.extend(said.calls.iter().map(|call| line("", &[tool_call(call)])));
        lines.extend(said.stop.map(|stop| done(said, stop, line("", &[]))));
        lines.iter().map(|line| WireEvent::data(line.to_string())).collect()
    }

    fn document(&self, said: &Said) -> Value {
        let calls: Vec<Value> = said.calls.iter().map(tool_call).collect();
        let whole = line(&said.deltas.concat(), &calls);
        match said.stop {
            Some(stop) => done(said, stop, whole),
            None => whole,
        }
    }

    fn form(&self) -> StreamForm {
        StreamForm::Lines
    }
}

fn line(content: &str, calls: &[Value]) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), content.into());
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    json!({ "model": "scripted-model", "created_at": "2026-01-01T00:00:00.000000Z", "message": message, "done": false })
}

fn tool_call(call: &SaidCall) -> Value {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({ "id": call.id, "function": { "name": call.name, "arguments": arguments } })
}

fn done(said: &Said, stop: StopReason, mut line: Value) -> Value {
    let more = [
        ("done", true.into()),
        ("done_reason", done_reason(stop).into()),
        ("total_duration", 3_000_000.into()),
        ("load_duration", 1_000_000.into()),
        ("prompt_eval_count", said.usage.input_tokens.into()),
        ("prompt_eval_duration", 1_000_000.into()),
        ("eval_count", said.usage.output_tokens.into()),
        ("eval_duration", 1_000_000.into()),
    ];
    if let Some(fields) = line.as_object_mut() {
        fields.extend(more.map(|(name, value): (&str, Value)| (name.to_owned(), value)));
    }
    line
}

const fn done_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::NotDone | StopReason::ToolUse => "stop",
        StopReason::MaxTokens => "length",
        StopReason::ContentFilter | StopReason::Other => "unload",
    }
}
