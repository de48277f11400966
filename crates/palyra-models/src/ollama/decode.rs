//! From the lines of an `/api/chat` answer to events.
//!
//! Every line is a document with what is new; calls come whole; the last line says `done` and holds the counts. An error may
//! stand on any line. How long loading and reading took is told there too and passed over: time is measured where it is spent.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use super::ORIGIN;
use crate::chat::empty_answer;
use crate::error::ModelError;
use crate::event::{ModelEvent, StopReason, Usage};
use crate::reasoning::ReasoningBlock;
use crate::wire::{Counts, Decode, Flow, Framing, Judge, ToolNames, from_stream, no_part_of, parse};

/// Turns one answer into events.
#[derive(Debug)]
pub(super) struct Decoder {
    names: ToolNames,
    judge: Judge,
    calls: u32,
    /// Ids of calls that have been seen.
    seen: BTreeSet<String>,
    thoughts: String,
    usage: Option<Usage>,
    stop: Option<StopReason>,
}

impl Decoder {
    /// A decoder for the answer to one request.
    pub(super) fn new(names: ToolNames, judge: Judge) -> Self {
        Self { names, judge, calls: 0, seen: BTreeSet::new(), thoughts: String::new(), usage: None, stop: None }
    }

    fn read_message(&mut self, message: &Value, events: &mut VecDeque<ModelEvent>) {
        let text = |field: &str| message.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(thought) = text("thinking") {
            self.thoughts.push_str(thought);
            events.push_back(ModelEvent::ReasoningDelta(thought.to_owned()));
        }
        let calls = message.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if text("content").is_some() || !calls.is_empty() {
            self.end_thoughts(events);
        }
        events.extend(text("content").map(|content| ModelEvent::TextDelta(content.to_owned())));
        for call in calls {
            let function = call.get("function").unwrap_or(call);
            let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
            if id.is_some_and(|id| !self.seen.insert(id.to_owned())) {
                // The same call again: making it twice would be worse than not at all.
                events.push_back(ModelEvent::Repaired("a call that was sent twice was taken once".to_owned()));
                continue;
            }
            let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
            let arguments = match function.get("arguments") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => "{}".to_owned(),
                Some(other) => other.to_string(),
            };
            // The server numbers calls within a line in some versions and over the answer in others: counted here instead.
            events.push_back(ModelEvent::ToolCallDelta {
                index: Some(self.calls),
                id: id.map(str::to_owned),
                name: Some(self.names.known_as(name)),
                arguments,
            });
            self.calls = self.calls.saturating_add(1);
        }
    }

    fn end_thoughts(&mut self, events: &mut VecDeque<ModelEvent>) {
        if !self.thoughts.is_empty() {
            let text = std::mem::take(&mut self.thoughts);
            let block = ReasoningBlock { origin: ORIGIN.to_owned(), text, payload: Value::Null, position: self.calls };
            events.push_back(ModelEvent::Reasoning(block));
        }
    }
}

impl Decode for Decoder {
    const FRAMING: Framing = Framing::Lines;

    fn read(&mut self, data: &str, events: &mut VecDeque<ModelEvent>) -> Result<Flow, ModelError> {
        let line = parse(data)?;
        if line.get("error").is_some_and(|error| !error.is_null()) {
            return Err(from_stream(line, self.judge));
        }
        let done = line.get("done").and_then(Value::as_bool);
        if done.is_none() && line.get("message").is_none() {
            return Err(no_part_of("part of a chat"));
        }
        self.read_message(line.get("message").unwrap_or(&Value::Null), events);
        if done != Some(true) {
            return Ok(Flow::More);
        }
        // A count is left out when it is zero, as for a prompt that the server still had at the ready.
        let mut counts = Counts::of(&line);
        let usage = Usage::plain(counts.at(&["/prompt_eval_count"]), counts.at(&["/eval_count"]));
        self.usage = counts.finish(usage);
        self.stop = Some(match line.get("done_reason").and_then(Value::as_str) {
            Some("stop") | None => StopReason::EndTurn,
            Some("length") => StopReason::MaxTokens,
            Some(_) => StopReason::Other,
        });
        Ok(Flow::Ended)
    }

    fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(&mut self, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        self.end_thoughts(events);
        let stop = self.stop.ok_or_else(empty_answer)?;
        events.extend(self.usage.map(ModelEvent::Usage));
        events.push_back(ModelEvent::Finished(stop));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::any_json::{any_json, stands};
    use crate::wire::no_verdict;

    const KEYS: &[&str] = &[
        "message",
        "content",
        "thinking",
        "tool_calls",
        "function",
        "id",
        "name",
        "arguments",
        "done",
        "done_reason",
        "eval_count",
        "prompt_eval_count",
    ];
    const WORDS: &[&str] = &["stop", "length", "load", "palyra__fs__read", "{", "{\"a\":1}"];

    proptest! {
        #[test]
        fn no_stream_confuses_it(messages in prop::collection::vec(any_json(KEYS, WORDS), 0..8), last in any_json(KEYS, WORDS)) {
            let mut lines: Vec<Value> = messages.into_iter().map(|message| json!({ "message": message })).collect();
            lines.push(json!({ "message": last, "done": true, "done_reason": last }));
            stands(Decoder::new(ToolNames::default(), no_verdict), &lines);
        }
    }
}
