//! Thoughts of the Responses API: from an item to a block that is kept, and back.

use serde_json::{Map, Value, json};

use super::encode::AfterText;
use crate::reasoning::ReasoningBlock;

/// Where these blocks come from and go back to.
pub(super) const ORIGIN: &str = "openai_responses";

/// Fields of an item that go back; the rest is only told.
const KEPT: &[&str] = &["type", "id", "summary", "content", "encrypted_content"];

/// The block for a finished item.
pub(super) fn block(item: &Value, model: &str, position: u32, after: AfterText) -> ReasoningBlock {
    let texts = |field: &str| -> Vec<&str> {
        let parts = item.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
    };
    let content = texts("content");
    let text = if content.is_empty() { texts("summary").join("\n\n") } else { content.concat() };
    let kept: Map<String, Value> = KEPT
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), item.get(field).filter(|value| !value.is_null())?.clone())))
        .collect();
    let payload = json!({ "model": model, "item": kept, "after_text": after == AfterText::Yes });
    ReasoningBlock { origin: ORIGIN.to_owned(), text, payload, position }
}

/// The item of a block, if this model may be given it back.
pub(super) fn thought_item(block: &ReasoningBlock, model: &str) -> Option<(AfterText, Value)> {
    if block.payload.get("model").and_then(Value::as_str) != Some(model) {
        return None;
    }
    let mut item = block.payload.get("item").and_then(Value::as_object)?.clone();
    let sealed = item.get("encrypted_content").and_then(Value::as_str).is_some_and(|seal| !seal.is_empty());
    let open = item.get("content").and_then(Value::as_array).is_some_and(|parts| !parts.is_empty());
    if !sealed && !open {
        return None;
    }
    item.entry("summary").or_insert_with(|| Value::Array(Vec::new()));
    let after = block.payload.get("after_text").and_then(Value::as_bool).unwrap_or_default();
    Some((if after { AfterText::Yes } else { AfterText::No }, Value::Object(item)))
}
