//! Gemini's `streamGenerateContent`, from the server's side.

use serde_json::{Value, json};

use super::said::{Said, SaidCall, Wire, WireEvent};
use crate::event::StopReason;

/// Gemini's generation of content.
#[derive(Debug, Clone, Copy)]
pub struct GeminiWire;

impl Wire for GeminiWire {
    fn answers(&self, path: &str) -> bool {
        path.ends_with(":streamGenerateContent") || path.ends_with(":generateContent")
    }

    fn events(&self, said: &Said) -> Vec<WireEvent> {
        let texts = said.deltas.iter().map(|text| json!({ "text": text }));
        let mut chunks: Vec<Value> =
            texts.chain(said.calls.iter().map(call)).map(|part| chunk(said, &[part], None)).collect();
        if let Some(stop) = said.stop {
            chunks.push(chunk(said, &[json!({ "text": "" })], Some(stop)));
        }
        chunks.iter().map(|chunk| WireEvent::data(chunk.to_string())).collect()
    }

    fn document(&self, said: &Said) -> Value {
        let text = (!said.deltas.is_empty()).then(|| json!({ "text": said.deltas.concat() }));
        let parts: Vec<Value> = text.into_iter().chain(said.calls.iter().map(call)).collect();
        chunk(said, &parts, said.stop)
    }

    fn wants_stream(&self, path: &str, _body: &Value) -> bool {
        path.contains(":streamGenerateContent")
    }
}

fn call(call: &SaidCall) -> Value {
    let args: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({ "functionCall": { "id": call.id, "name": call.name, "args": args } })
}

fn chunk(said: &Said, parts: &[Value], stop: Option<StopReason>) -> Value {
    let usage = said.usage;
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
    if let (Some(fields), Some(stop)) = (candidate.as_object_mut(), stop) {
        fields.insert("finishReason".to_owned(), finish_reason(stop).into());
    }
    json!({
        "candidates": [candidate], "modelVersion": "scripted-model", "responseId": "scripted",
        "usageMetadata": {
            "promptTokenCount": usage.input_tokens, "cachedContentTokenCount": usage.cached_tokens,
            "candidatesTokenCount": usage.output_tokens.saturating_sub(usage.reasoning_tokens),
            "thoughtsTokenCount": usage.reasoning_tokens,
            "totalTokenCount": usage.input_tokens.saturating_add(usage.output_tokens),
        },
    })
}

const fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::NotDone | StopReason::ToolUse => "STOP",
        StopReason::MaxTokens => "MAX_TOKENS",
        StopReason::ContentFilter => "SAFETY",
        StopReason::Other => "OTHER",
    }
}
