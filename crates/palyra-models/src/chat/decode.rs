//! From the JSON of a server to events.
//!
//! Reads what the servers of the field really send: chunks of a stream (`delta`) and whole answers (`message`), contents
//! as text or as parts, arguments as text or as an object, the older `function_call`. Unknown fields are passed over.

use std::collections::VecDeque;

use serde_json::Value;

use super::reasoning::Thoughts;
use super::usage;
use crate::error::ModelError;
use crate::event::{ModelEvent, StopReason, Usage};
use crate::wire::{Decode, Flow, Framing, Judge, ToolNames, from_stream, no_part_of, parse};

/// What marks the end of a stream.
const DONE: &str = "[DONE]";

/// Turns one answer into events.
#[derive(Debug)]
pub(super) struct Decoder {
    names: ToolNames,
    judge: Judge,
    thoughts: Thoughts,
    refusal: Refused,
    stop_reason: Option<StopReason>,
    usage: Option<Usage>,
    produced: Produced,
}

/// Whether anything of the answer has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Produced {
    Nothing,
    Something,
}

/// Whether the model itself declined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    Yes,
    No,
}

impl Decoder {
    /// A decoder for the answer to one request, whose thoughts come from `origin` and `model`.
    pub(super) fn new(names: ToolNames, judge: Judge, origin: String, model: String) -> Self {
        let thoughts = Thoughts::new(origin, model);
        let (refusal, produced) = (Refused::No, Produced::Nothing);
        Self { names, judge, thoughts, refusal, stop_reason: None, usage: None, produced }
    }

    fn read_choice(&mut self, choice: &Value, events: &mut VecDeque<ModelEvent>) {
        let before = events.len();
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            self.thoughts.read(delta, events);
            for field in ["content", "refusal"] {
                let text = text_of(delta.get(field));
                if !text.is_empty() {
                    events.push_back(ModelEvent::TextDelta(text));
                    if field == "refusal" {
                        self.refusal = Refused::Yes;
                    }
                }
            }
            for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                let index = call.get("index").and_then(Value::as_u64).and_then(|index| u32::try_from(index).ok());
                let id = call.get("id").and_then(Value::as_str);
                events.extend(self.call_part(index, id, call.get("function").unwrap_or(call)));
            }
            if let Some(function) = delta.get("function_call").filter(|call| call.is_object()) {
                events.extend(self.call_part(Some(0), None, function));
            }
        }
        if events.len() > before {
            self.produced = Produced::Something;
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.stop_reason = Some(stop_reason(reason));
        }
    }

    fn call_part(&self, index: Option<u32>, id: Option<&str>, function: &Value) -> Option<ModelEvent> {
        let name = function.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        let id = id.filter(|id| !id.is_empty());
        if id.is_none() && name.is_none() && arguments.is_empty() {
            return None;
        }
        Some(ModelEvent::ToolCallDelta {
            index,
            id: id.map(str::to_owned),
            name: name.map(|name| self.names.known_as(name)),
            arguments,
        })
    }
}

impl Decode for Decoder {
    const FRAMING: Framing = Framing::Events;

    /// Whether the server has said why the model stopped; only usage may follow.
    fn has_stopped(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// Reads one JSON document of the answer.
    fn read(&mut self, json: &str, events: &mut VecDeque<ModelEvent>) -> Result<Flow, ModelError> {
        if json.trim() == DONE {
            return Ok(Flow::Ended);
        }
        let chunk = parse(json)?;
        if let Some(error) = error_in(&chunk) {
            return Err(from_stream(error.clone(), self.judge));
        }
        if !chunk.is_object() {
            return Err(no_part_of("chat completion"));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage::read(usage);
        }
        let choices = chunk.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // The model has stopped: whatever somebody adds behind that is not its answer, and above all no call of a tool.
        if self.stop_reason.is_some() {
            if choices.iter().any(|choice| choice.pointer("/delta/tool_calls").is_some_and(Value::is_array)) {
                events.push_back(ModelEvent::Repaired(
                    "a call that came after the end of the answer was left out".to_owned(),
                ));
            }
            return Ok(Flow::More);
        }
        // One answer is asked for; a server that sends more has its first one taken.
        for choice in choices.iter().filter(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0) {
            self.read_choice(choice, events);
        }
        Ok(Flow::More)
    }

    /// Reads a whole answer. In a stream, documents without a choice are decoration; alone, one is no answer.
    fn read_document(&mut self, json: &str, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        self.read(json, events)?;
        match parse(json)?.get("choices") {
            Some(_) => Ok(()),
            None => Err(no_part_of("chat completion")),
        }
    }

    /// The answer has ended in good order: the closing events.
    fn finish(&mut self, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let reason = match (self.stop_reason, self.produced) {
            (Some(StopReason::EndTurn), _) if self.refusal == Refused::Yes => StopReason::ContentFilter,
            (Some(reason), _) => reason,
            (None, Produced::Something) => StopReason::Other,
            (None, Produced::Nothing) => return Err(empty_answer()),
        };
        events.extend(self.thoughts.block().map(ModelEvent::Reasoning));
        events.extend(self.usage.map(ModelEvent::Usage));
        events.push_back(ModelEvent::Finished(reason));
        Ok(())
    }
}

/// An answer with nothing in it.
pub(crate) fn empty_answer() -> ModelError {
    ModelError::malformed("the model server sent an empty answer")
}

/// The error that stands in a chunk, wherever the server put it.
fn error_in(chunk: &Value) -> Option<&Value> {
    let present = |error: &&Value| !error.is_null();
    chunk
        .get("error")
        .filter(present)
        .or_else(|| chunk.pointer("/choices/0/error").filter(present))
        .or_else(|| chunk.get("object").is_some_and(|kind| kind == "error").then_some(chunk))
}

/// Text, or the text of parts.
fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect(),
        _ => String::new(),
    }
}

fn stop_reason(text: &str) -> StopReason {
    match text {
        "stop" | "eos" | "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolUse,
        "length" | "max_tokens" => StopReason::MaxTokens,
        "content_filter" | "safety" => StopReason::ContentFilter,
        _ => StopReason::Other,
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
