//! From the JSON of a server to events.
//!
//! Reads what the servers of the field really send: chunks of a stream (`delta`) and whole answers (`message`), contents
//! as text or as parts, arguments as text or as an object, the older `function_call`. Unknown fields are passed over;
//! the private reasoning that some servers add is not part of the answer and is dropped.

use std::collections::VecDeque;

use serde_json::Value;

use super::failure;
use super::tool_names::ToolNames;
use crate::error::ModelError;
use crate::event::{ModelEvent, StopReason, Usage};

/// Turns one answer into events.
#[derive(Debug)]
pub(super) struct Decoder {
    names: ToolNames,
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

impl Decoder {
    /// A decoder for the answer to one request.
    pub(super) fn new(names: ToolNames) -> Self {
        Self { names, stop_reason: None, usage: None, produced: Produced::Nothing }
    }

    /// Whether the server has said why the model stopped; only usage may follow.
    pub(super) fn has_stopped(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// Reads one JSON document of the answer.
    pub(super) fn read(&mut self, json: &str, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let chunk: Value = serde_json::from_str(json)
            .map_err(|error| ModelError::malformed(format!("the server sent something that is not JSON: {error}")))?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(failure::from_stream(error));
        }
        if !chunk.is_object() {
            return Err(ModelError::malformed("the server sent JSON that is not a chat completion"));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            let count = |field: &str| usage.get(field).and_then(Value::as_u64).unwrap_or_default();
            self.usage = Some(Usage::plain(count("prompt_tokens"), count("completion_tokens")));
        }
        let choices = chunk.get("choices").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // One answer is asked for; a server that sends more has its first one taken.
        for choice in choices.iter().filter(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0) {
            self.read_choice(choice, events);
        }
        Ok(())
    }

    /// The answer has ended in good order: the closing events.
    pub(super) fn finish(&mut self, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let reason = match (self.stop_reason, self.produced) {
            (Some(reason), _) => reason,
            (None, Produced::Something) => StopReason::Other,
            (None, Produced::Nothing) => return Err(ModelError::malformed("the server sent an empty answer")),
        };
        events.extend(self.usage.map(ModelEvent::Usage));
        events.push_back(ModelEvent::Finished(reason));
        Ok(())
    }

    fn read_choice(&mut self, choice: &Value, events: &mut VecDeque<ModelEvent>) {
        let before = events.len();
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            for field in ["content", "refusal"] {
                let text = text_of(delta.get(field));
                if !text.is_empty() {
                    events.push_back(ModelEvent::TextDelta(text));
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::ModelErrorClass;

    fn read(chunks: &[Value]) -> Result<Vec<ModelEvent>, ModelError> {
        let mut decoder = Decoder::new(ToolNames::default());
        let mut events = VecDeque::new();
        for chunk in chunks {
            decoder.read(&chunk.to_string(), &mut events)?;
        }
        decoder.finish(&mut events)?;
        Ok(events.into())
    }

    #[test]
    fn text_in_all_its_forms() {
        let delta = |content: Value| json!({"choices": [{"index": 0, "delta": {"content": content}}]});
        let events = read(&[
            json!({"choices": [{"delta": {"role": "assistant", "content": null}}]}),
            delta(json!("a")),
            delta(json!("")),
            delta(json!([{"type": "text", "text": "b"}])),
            json!({"choices": [{"delta": {"reasoning_content": "hm", "refusal": "c"}}]}),
            json!({"choices": [{"index": 1, "delta": {"content": "another choice"}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}}),
        ]);
        assert_eq!(
            events.unwrap(),
            [
                ModelEvent::TextDelta("a".into()),
                ModelEvent::TextDelta("b".into()),
                ModelEvent::TextDelta("c".into()),
                ModelEvent::Usage(Usage::plain(4, 2)),
                ModelEvent::Finished(StopReason::EndTurn),
            ]
        );
    }

    #[test]
    fn calls_in_all_their_forms() {
        let call =
            |index: Option<u32>, id: Option<&str>, name: Option<&str>, arguments: &str| ModelEvent::ToolCallDelta {
                index,
                id: id.map(str::to_owned),
                name: name.map(str::to_owned),
                arguments: arguments.to_owned(),
            };
        let events = read(&[
            json!({"choices": [{"delta": {"tool_calls": [
                {"index": 0, "id": "a", "type": "function", "function": {"name": "palyra__fs__read", "arguments": ""}},
                {"id": "b", "function": {"name": "x", "arguments": {"k": 1}}},
                {"index": 0, "function": {"arguments": "{}"}},
                {"index": 7, "id": "", "function": {"name": "", "arguments": null}},
            ]}}]}),
            json!({"choices": [{"message": {"function_call": {"name": "old", "arguments": "{}"}}, "finish_reason": "tool_calls"}]}),
        ]);
        assert_eq!(
            events.unwrap(),
            [
                call(Some(0), Some("a"), Some("palyra.fs.read"), ""),
                call(None, Some("b"), Some("x"), "{\"k\":1}"),
                call(Some(0), None, None, "{}"),
                call(Some(0), None, Some("old"), "{}"),
                ModelEvent::Finished(StopReason::ToolUse),
            ]
        );
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        assert_eq!(read(&[]).unwrap_err().class, ModelErrorClass::Malformed);
        assert_eq!(read(&[json!([1])]).unwrap_err().class, ModelErrorClass::Malformed);
        assert_eq!(read(&[json!({"choices": "x"})]).unwrap_err().class, ModelErrorClass::Malformed);
        assert_eq!(read(&[json!({"error": {"message": "overloaded"}})]).unwrap_err().class, ModelErrorClass::Transient);
        let mut decoder = Decoder::new(ToolNames::default());
        assert!(decoder.read("{\"choices\": [", &mut VecDeque::new()).is_err());
    }
}
