//! Anthropic's Messages, from the server's side.

use serde_json::{Value, json};

use super::said::{Said, SaidCall, Wire, WireEvent};
use crate::event::StopReason;

/// Anthropic's Messages.
#[derive(Debug, Clone, Copy)]
pub struct AnthropicWire;

impl Wire for AnthropicWire {
    fn answers(&self, path: &str) -> bool {
        path.ends_with("/messages")
    }

    fn events(&self, said: &Said) -> Vec<WireEvent> {
        let begun = json!({
            "id": "msg_scripted", "type": "message", "role": "assistant", "model": "scripted-model", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage(said),
        });
        let mut events = vec![json!({ "type": "message_start", "message": begun }), json!({ "type": "ping" })];
        if !said.deltas.is_empty() {
            let text = json!({ "type": "text", "text": "" });
            let deltas = said.deltas.iter().map(|text| json!({ "type": "text_delta", "text": text }));
            events.extend(block(0, &text, deltas));
        }
        for (index, call) in said.calls.iter().enumerate() {
            let opening = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
            let deltas = call.halves().map(|part| json!({ "type": "input_json_delta", "partial_json": part }));
            events.extend(block(index + usize::from(!said.deltas.is_empty()), &opening, deltas.into_iter()));
        }
        if let Some(stop) = said.stop {
            let delta = json!({ "stop_reason": stop_reason(stop), "stop_sequence": null });
            events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage(said) }));
        }
        events.push(json!({ "type": "message_stop" }));
        let named = |event: Value| WireEvent {
            name: event.get("type").and_then(Value::as_str).map(str::to_owned),
            data: event.to_string(),
        };
        events.into_iter().map(named).collect()
    }

    fn document(&self, said: &Said) -> Value {
        let mut content = Vec::new();
        if !said.deltas.is_empty() {
            content.push(json!({ "type": "text", "text": said.deltas.concat() }));
        }
        content.extend(said.calls.iter().map(tool_use));
        json!({
            "id": "msg_scripted", "type": "message", "role": "assistant", "model": "scripted-model",
            "content": content, "stop_reason": said.stop.map(stop_reason), "stop_sequence": null, "usage": usage(said),
        })
    }
}

fn block(index: usize, opening: &Value, deltas: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut events = vec![json!({ "type": "content_block_start", "index": index, "content_block": opening })];
    events.extend(deltas.map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })));
    events.push(json!({ "type": "content_block_stop", "index": index }));
    events
}

fn tool_use(call: &SaidCall) -> Value {
    let input = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
}

/// Cached tokens are told apart from the others.
fn usage(said: &Said) -> Value {
    let usage = said.usage;
    let cached = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
    json!({
        "input_tokens": usage.input_tokens.saturating_sub(cached), "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens, "output_tokens": usage.output_tokens,
        "output_tokens_details": { "thinking_tokens": usage.reasoning_tokens },
    })
}

const fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::NotDone => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::ContentFilter => "refusal",
        StopReason::Other => "pause_turn",
    }
}
