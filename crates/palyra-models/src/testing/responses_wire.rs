//! The Responses API, from the server's side.

use serde_json::{Value, json};

use super::said::{Said, SaidCall, Wire, WireEvent};
use crate::event::StopReason;

/// The Responses API.
#[derive(Debug, Clone, Copy)]
pub struct ResponsesWire;

impl Wire for ResponsesWire {
    fn answers(&self, path: &str) -> bool {
        path.ends_with("/responses")
    }

    fn events(&self, said: &Said) -> Vec<WireEvent> {
        let begun = json!({ "id": "resp_scripted", "object": "response", "status": "in_progress", "output": [] });
        let mut events = vec![
            json!({ "type": "response.created", "response": begun }),
            json!({ "type": "response.in_progress", "response": begun }),
        ];
        if !said.deltas.is_empty() {
            events.extend(message_events(said));
        }
        let before = usize::from(!said.deltas.is_empty());
        for (index, call) in said.calls.iter().enumerate() {
            events.extend(call_events(call, index + before));
        }
        if let Some(stop) = said.stop {
            let kind = if is_cut(stop) { "response.incomplete" } else { "response.completed" };
            events.push(json!({ "type": kind, "response": self.document(said) }));
        }
        events
            .into_iter()
            .enumerate()
            .map(|(number, mut event)| {
                if let Some(fields) = event.as_object_mut() {
                    fields.insert("sequence_number".to_owned(), number.into());
                }
                let name = event.get("type").and_then(Value::as_str).map(str::to_owned);
                WireEvent { name, data: event.to_string() }
            })
            .collect()
    }

    fn document(&self, said: &Said) -> Value {
        let mut output = Vec::new();
        if !said.deltas.is_empty() {
            output.push(message(said));
        }
        output.extend(said.calls.iter().map(call_item));
        let cut = said.stop.filter(|stop| is_cut(*stop));
        let reason = match cut {
            Some(StopReason::MaxTokens) => json!({ "reason": "max_output_tokens" }),
            Some(_) => json!({ "reason": "content_filter" }),
            None => Value::Null,
        };
        let usage = said.usage;
        json!({
            "id": "resp_scripted", "object": "response", "model": "scripted-model", "output": output,
            "status": if cut.is_some() { "incomplete" } else { "completed" }, "incomplete_details": reason,
            "usage": {
                "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
                "input_tokens_details": { "cached_tokens": usage.cached_tokens },
                "output_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
            },
        })
    }
}

const fn is_cut(stop: StopReason) -> bool {
    matches!(stop, StopReason::MaxTokens | StopReason::ContentFilter)
}

fn message(said: &Said) -> Value {
    let content = json!({ "type": "output_text", "text": said.deltas.concat(), "annotations": [] });
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [content] })
}

fn message_events(said: &Said) -> Vec<Value> {
    let place = |mut event: Value| {
        if let Some(fields) = event.as_object_mut() {
            fields.insert("item_id".to_owned(), "msg_1".into());
            fields.insert("output_index".to_owned(), 0.into());
            fields.insert("content_index".to_owned(), 0.into());
        }
        event
    };
    let begun =
        json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": [] });
    let part = json!({ "type": "output_text", "text": "", "annotations": [] });
    let mut events = vec![
        json!({ "type": "response.output_item.added", "output_index": 0, "item": begun }),
        place(json!({ "type": "response.content_part.added", "part": part })),
    ];
    events.extend(said.deltas.iter().map(|text| place(json!({ "type": "response.output_text.delta", "delta": text }))));
    events.push(place(json!({ "type": "response.output_text.done", "text": said.deltas.concat() })));
    events.push(json!({ "type": "response.output_item.done", "output_index": 0, "item": message(said) }));
    events
}

fn call_item(call: &SaidCall) -> Value {
    json!({
        "type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id, "name": call.name,
        "arguments": call.arguments, "status": "completed",
    })
}

fn call_events(call: &SaidCall, index: usize) -> Vec<Value> {
    let id = format!("fc_{}", call.id);
    let mut begun = call_item(call);
    if let Some(fields) = begun.as_object_mut() {
        fields.insert("arguments".to_owned(), "".into());
        fields.insert("status".to_owned(), "in_progress".into());
    }
    let mut events = vec![json!({ "type": "response.output_item.added", "output_index": index, "item": begun })];
    events.extend(call.halves().map(|part| {
        json!({
            "type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": part,
        })
    }));
    events.push(json!({
        "type": "response.function_call_arguments.done", "item_id": id, "output_index": index,
        "arguments": call.arguments,
    }));
    events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": call_item(call) }));
    events
}
