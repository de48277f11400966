//! Chat completions, from the server's side.

use serde_json::{Value, json};

use super::said::{Said, Wire, WireEvent};
use crate::event::StopReason;

/// Chat completions.
#[derive(Debug, Clone, Copy)]
pub struct ChatWire;

impl Wire for ChatWire {
    fn answers(&self, path: &str) -> bool {
        path.ends_with("/chat/completions")
    }

    fn events(&self, said: &Said) -> Vec<WireEvent> {
        let chunk = |delta: Value, stop: Option<&str>| {
            json!({
                "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "model": "scripted-model",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": stop }],
            })
        };
        let mut chunks = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
        chunks.extend(said.deltas.iter().map(|text| chunk(json!({ "content": text }), None)));
        for (index, said) in said.calls.iter().enumerate() {
            let call = |call: Value| chunk(json!({ "tool_calls": [call] }), None);
            let function = json!({ "name": said.name, "arguments": "" });
            chunks.push(call(json!({ "index": index, "id": said.id, "type": "function", "function": function })));
            let parts = said.halves();
            chunks.extend(parts.map(|part| call(json!({ "index": index, "function": { "arguments": part } }))));
        }
        if let Some(stop) = said.stop {
            chunks.push(chunk(json!({}), Some(finish_reason(stop))));
        }
        chunks.push(json!({ "object": "chat.completion.chunk", "choices": [], "usage": usage(said) }));
        chunks.iter().map(|chunk| WireEvent::data(chunk.to_string())).collect()
    }

    fn document(&self, said: &Said) -> Value {
        let calls: Vec<Value> = said
            .calls
            .iter()
            .map(|call| {
                let function = json!({ "name": call.name, "arguments": call.arguments });
                json!({ "id": call.id, "type": "function", "function": function })
            })
            .collect();
        let mut message = json!({ "role": "assistant", "content": said.deltas.concat() });
        if let Some(fields) = message.as_object_mut().filter(|_| !calls.is_empty()) {
            fields.insert("tool_calls".to_owned(), calls.into());
        }
        json!({
            "id": "chatcmpl-scripted", "object": "chat.completion", "model": "scripted-model", "usage": usage(said),
            "choices": [{ "index": 0, "message": message, "finish_reason": said.stop.map(finish_reason) }],
        })
    }

    fn end_mark(&self) -> Option<&'static str> {
        Some("[DONE]")
    }
}

fn usage(said: &Said) -> Value {
    let usage = said.usage;
    let mut written = json!({
        "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    });
    if let Some(fields) = written.as_object_mut() {
        if usage.cached_tokens > 0 {
            fields.insert("prompt_tokens_details".to_owned(), json!({ "cached_tokens": usage.cached_tokens }));
        }
        if usage.reasoning_tokens > 0 {
            let details = json!({ "reasoning_tokens": usage.reasoning_tokens });
            fields.insert("completion_tokens_details".to_owned(), details);
        }
    }
    written
}

const fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::NotDone | StopReason::Other => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::ContentFilter => "content_filter",
    }
}
