//! What a model thought, on the wire of chat completions.
//!
//! Servers have three spellings: `reasoning_content` (DeepSeek, llama.cpp, LM Studio and more), `reasoning` (vLLM, Groq and more) and
//! `reasoning_details` beside it (OpenRouter), which holds signatures and sealed parts. The text is shown as it comes; one block is
//! made of it all at the end, which remembers the spelling and the model. It goes back in the same spelling, and to the same
//! model only: another one could not check the signatures.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::habits::GiveBack;
use crate::event::ModelEvent;
use crate::message::Message;
use crate::reasoning::ReasoningBlock;

/// Collects the thoughts of one answer.
#[derive(Debug)]
pub(super) struct Thoughts {
    origin: String,
    model: String,
    text: String,
    field: Option<&'static str>,
    details: Vec<Value>,
}

impl Thoughts {
    pub(super) fn new(origin: String, model: String) -> Self {
        Self { origin, model, text: String::new(), field: None, details: Vec::new() }
    }

    /// Reads what a delta or message holds of thoughts.
    pub(super) fn read(&mut self, delta: &Value, events: &mut VecDeque<ModelEvent>) {
        let plain = ["reasoning_content", "reasoning"].into_iter().find_map(|field| {
            let text = delta.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())?;
            Some((field, text.to_owned()))
        });
        let details = delta.get("reasoning_details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // The same text stands in both places where a server has both.
        let text = match plain {
            Some((field, text)) => {
                self.field.get_or_insert(field);
                text
            }
            None => details.iter().filter_map(readable).collect(),
        };
        for detail in details {
            self.add_detail(detail);
        }
        if !text.is_empty() {
            self.text.push_str(&text);
            events.push_back(ModelEvent::ReasoningDelta(text));
        }
    }

    /// The block to keep, if anything was thought.
    pub(super) fn block(&mut self) -> Option<ReasoningBlock> {
        if self.text.is_empty() && self.details.is_empty() {
            return None;
        }
        let mut payload = Map::new();
        payload.insert("model".to_owned(), self.model.clone().into());
        if self.details.is_empty() {
            payload.insert("field".to_owned(), self.field.unwrap_or("reasoning_content").into());
        } else {
            payload.insert("details".to_owned(), std::mem::take(&mut self.details).into());
        }
        let text = std::mem::take(&mut self.text);
        Some(ReasoningBlock { origin: self.origin.clone(), text, payload: Value::Object(payload), position: 0 })
    }

    /// A detail comes in parts that have the same index and kind; texts are joined, everything else is replaced by the later part.
    fn add_detail(&mut self, detail: &Value) {
        let Some(part) = detail.as_object() else { return };
        let same = |known: &Value| {
            known.get("index").is_some_and(|index| Some(index) == part.get("index"))
                && known.get("type") == part.get("type")
        };
        let Some(Value::Object(known)) = self.details.iter_mut().rev().find(|known| same(known)) else {
            self.details.push(detail.clone());
            return;
        };
        for (name, value) in part {
            match (known.get_mut(name), value) {
                (Some(Value::String(held)), Value::String(more))
                    if matches!(name.as_str(), "text" | "summary" | "data") =>
                {
                    held.push_str(more);
                }
                (Some(_), Value::Null) => {}
                _ => {
                    known.insert(name.clone(), value.clone());
                }
            }
        }
    }
}

/// What people may read of a detail.
fn readable(detail: &Value) -> Option<&str> {
    ["text", "summary"].iter().find_map(|field| detail.get(field).and_then(Value::as_str))
}

/// Which of an assistant's messages stand in the present task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Before the newest message of the person.
    Earlier,
    /// After it.
    Present,
}

/// Adds to an assistant's message what the model is to be reminded of.
pub(super) fn give_back(
    fields: &mut Map<String, Value>,
    message: &Message,
    place: Place,
    habit: GiveBack,
    (origin, model): (&str, &str),
) {
    let wanted = match habit {
        GiveBack::Everything => true,
        GiveBack::PresentTask => place == Place::Present && !message.tool_calls.is_empty(),
    };
    if !wanted {
        return;
    }
    for block in message.reasoning.iter().filter(|block| block.origin == origin) {
        let payload = |name: &str| block.payload.get(name);
        if payload("model").and_then(Value::as_str) != Some(model) {
            continue;
        }
        if let Some(details) = payload("details") {
            fields.insert("reasoning_details".to_owned(), details.clone());
        } else if let Some(field) = payload("field").and_then(Value::as_str) {
            fields.insert(field.to_owned(), json!(block.text));
        }
    }
}

#[cfg(test)]
#[path = "reasoning_tests.rs"]
mod tests;
