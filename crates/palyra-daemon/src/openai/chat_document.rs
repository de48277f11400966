//! How chat completions are written, at once and in chunks.

use palyra_models::Usage;
use serde_json::{Value, json};

use super::error::OpenAiError;
use super::following::{ClientCall, Ending};
use super::ids;
use super::sse::{Events, Writing};
use super::whole::Whole;

/// A completion at once.
pub(super) fn whole(whole: Whole, model: &str, created: u64) -> Value {
    let reason = finish_reason(&whole.ending);
    let mut message = json!({
        "role": "assistant",
        "content": if whole.text.is_empty() { Value::Null } else { Value::String(whole.text) },
        "refusal": null,
    });
    if let (Ending::Calls(calls), Some(fields)) = (&whole.ending, message.as_object_mut()) {
        fields.insert("tool_calls".to_owned(), calls.iter().map(tool_call).collect());
    }
    json!({
        "id": ids::completion(whole.run_id, whole.from_seq),
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason }],
        "usage": usage_of(whole.usage),
        "system_fingerprint": null,
    })
}

fn tool_call(call: &ClientCall) -> Value {
    json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": call.arguments } })
}

fn usage_of(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}

fn finish_reason(ending: &Ending) -> &'static str {
    match ending {
        Ending::Stop => "stop",
        Ending::Length => "length",
        Ending::Filtered => "content_filter",
        Ending::Calls(_) => "tool_calls",
    }
}

/// Whether the last chunk says what was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TellUsage {
    /// In a chunk of its own.
    AtTheEnd,
    /// Not at all.
    Never,
}

/// A completion in chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) created: u64,
    pub(super) usage: TellUsage,
}

impl Chunks {
    fn chunk(&self, choices: &Value, usage: Option<Usage>) -> Value {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "system_fingerprint": null,
        });
        if let (TellUsage::AtTheEnd, Some(fields)) = (self.usage, chunk.as_object_mut()) {
            fields.insert("usage".to_owned(), usage.map_or(Value::Null, usage_of));
        }
        chunk
    }

    fn delta(&self, delta: &Value, finish_reason: Option<&str>, events: &mut Events) {
        let choice = json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason }]);
        events.data(&self.chunk(&choice, None));
    }
}

impl Writing for Chunks {
    fn begin(&mut self, events: &mut Events) {
        self.delta(&json!({ "role": "assistant", "content": "", "refusal": null }), None, events);
    }

    fn text(&mut self, text: &str, events: &mut Events) {
        self.delta(&json!({ "content": text }), None, events);
    }

    fn done(&mut self, ending: Ending, usage: Usage, events: &mut Events) {
        if let Ending::Calls(calls) = &ending {
            for (index, call) in calls.iter().enumerate() {
                let mut call = tool_call(call);
                if let Some(fields) = call.as_object_mut() {
                    fields.insert("index".to_owned(), index.into());
                }
                self.delta(&json!({ "tool_calls": [call] }), None, events);
            }
        }
        self.delta(&json!({}), Some(finish_reason(&ending)), events);
        if self.usage == TellUsage::AtTheEnd {
            events.data(&self.chunk(&json!([]), Some(usage)));
        }
        events.finish();
    }

    fn failed(&mut self, error: &OpenAiError, _: Usage, events: &mut Events) {
        // Without the mark of the end: a cut-off answer never looks like a whole one.
        events.data(&error.document());
    }
}
