//! From the events of the Responses API to ours.
//!
//! Text, refusals and arguments are taken from their deltas. The closing events repeat them whole, and are only used for what the
//! deltas left out: servers that copy the API skip one or the other. An event that comes twice is known by its number and passed
//! over. Events of tools that run at the provider, of sound and of pictures are passed over knowingly: none of them is asked for.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::encode::AfterText;
use super::items::block;
use crate::chat::empty_answer;
use crate::error::ModelError;
use crate::event::{ModelEvent, StopReason, Usage};
use crate::wire::{Counts, Decode, Flow, Framing, Judge, ToolNames, from_stream, no_part_of, parse};

/// Turns one answer into events.
#[derive(Debug)]
pub(super) struct Decoder {
    names: ToolNames,
    judge: Judge,
    model: String,
    /// What has been said of each item so far, by its key.
    items: BTreeMap<String, Item>,
    calls: u32,
    text_begun: AfterText,
    stop_reason: Option<StopReason>,
    refused: Option<StopReason>,
    usage: Option<Usage>,
    numbers: Numbers,
}

/// What has been passed on of an item.
#[derive(Debug, Default)]
struct Item {
    /// Which call it is, if it is one.
    call: Option<u32>,
    said: String,
    done: bool,
}

/// The numbers of the events. They are only believed once they have been seen to grow: a server that numbers everything zero must
/// not lose its answer.
#[derive(Debug, Default)]
struct Numbers {
    last: Option<u64>,
    grow: bool,
}

impl Numbers {
    /// Whether this event has come before.
    fn repeats(&mut self, number: Option<u64>) -> bool {
        let Some(number) = number else { return false };
        match self.last {
            Some(last) if number <= last => self.grow,
            last => {
                self.grow = last.is_some();
                self.last = Some(number);
                false
            }
        }
    }
}

impl Decoder {
    /// A decoder for the answer to one request.
    pub(super) fn new(names: ToolNames, judge: Judge, model: String) -> Self {
        Self {
            names,
            judge,
            model,
            items: BTreeMap::new(),
            calls: 0,
            text_begun: AfterText::No,
            stop_reason: None,
            refused: None,
            usage: None,
            numbers: Numbers::default(),
        }
    }

    fn read_event(&mut self, event: &Value, events: &mut VecDeque<ModelEvent>) -> Result<Flow, ModelError> {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let text = |field: &str| event.get(field).and_then(Value::as_str).unwrap_or_default();
        match kind {
            "response.output_text.delta" => self.say(&key(event), text("delta"), events),
            "response.output_text.done" => self.complete_text(&key(event), text("text"), events),
            "response.refusal.delta" => {
                self.refused = Some(StopReason::ContentFilter);
                self.say(&key(event), text("delta"), events);
            }
            "response.refusal.done" => {
                self.refused = Some(StopReason::ContentFilter);
                self.complete_text(&key(event), text("refusal"), events);
            }
            "response.function_call_arguments.delta" => self.argue(&item_key(event), text("delta"), events),
            "response.function_call_arguments.done" => {
                self.complete_arguments(&item_key(event), text("arguments"), events);
            }
            "response.output_item.added" => {
                if let Some(item) = event.get("item").filter(|item| is(item, "function_call")) {
                    self.open_call(&item_key(event), item, events);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.get("item") {
                    self.complete_item(&item_key(event), item, events);
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                think(text("delta"), events);
            }
            // The parts of a summary are paragraphs.
            "response.reasoning_summary_part.added" if event.get("summary_index").and_then(Value::as_u64) > Some(0) => {
                think("\n\n", events);
            }
            "response.completed" | "response.incomplete" => {
                let response = event.get("response").unwrap_or(event);
                self.read_response(response, events)?;
                if kind == "response.incomplete" {
                    self.cut_off();
                }
                return Ok(Flow::Ended);
            }
            "response.failed" | "response.cancelled" => {
                return Err(self.failed(event.get("response").unwrap_or(event)));
            }
            "error" => return Err(from_stream(event.clone(), self.judge)),
            // All others only announce, repeat or belong to what was not asked for.
            _ => {}
        }
        Ok(Flow::More)
    }

    /// The whole answer, at the end of a stream or instead of one.
    fn read_response(&mut self, response: &Value, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        if matches!(response.get("status").and_then(Value::as_str), Some("failed" | "cancelled")) {
            return Err(self.failed(response));
        }
        let output = response.get("output").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, item) in output.iter().enumerate() {
            let (place, id) = (index.to_string(), item.get("id").and_then(Value::as_str));
            let known_by_id = id.filter(|id| self.knows(id) && !self.knows(&place));
            self.complete_item(known_by_id.unwrap_or(&place), item, events);
        }
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            self.usage = read_usage(usage);
        }
        let why = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
        self.stop_reason = Some(match why {
            Some("max_output_tokens" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::ContentFilter,
            Some(_) => StopReason::Other,
            None if self.calls > 0 => StopReason::ToolUse,
            None => self.refused.unwrap_or(StopReason::EndTurn),
        });
        if response.get("status").is_some_and(|status| status == "incomplete") {
            self.cut_off();
        }
        Ok(())
    }

    /// An answer that says of itself that it is incomplete is no whole one, even if it does not say why, and whatever its event is called.
    fn cut_off(&mut self) {
        if matches!(self.stop_reason, Some(StopReason::EndTurn | StopReason::ToolUse)) {
            self.stop_reason = Some(StopReason::MaxTokens);
        }
    }

    /// Whether anything of an item has been seen, under this name.
    fn knows(&self, key: &str) -> bool {
        let parts = format!("{key}/");
        self.items.contains_key(key) || self.items.keys().any(|known| known.starts_with(&parts))
    }

    fn failed(&self, response: &Value) -> ModelError {
        let error = response.get("error").filter(|error| !error.is_null()).unwrap_or(response);
        from_stream(error.clone(), self.judge)
    }

    fn say(&mut self, key: &str, text: &str, events: &mut VecDeque<ModelEvent>) {
        if !text.is_empty() {
            self.items.entry(key.to_owned()).or_default().said.push_str(text);
            self.text_begun = AfterText::Yes;
            events.push_back(ModelEvent::TextDelta(text.to_owned()));
        }
    }

    /// Says what the deltas left out.
    fn complete_text(&mut self, key: &str, whole: &str, events: &mut VecDeque<ModelEvent>) {
        let said = self.items.get(key).map_or("", |item| item.said.as_str());
        let rest = whole.strip_prefix(said).unwrap_or_default().to_owned();
        self.say(key, &rest, events);
    }

    fn open_call(&mut self, key: &str, item: &Value, events: &mut VecDeque<ModelEvent>) {
        let known = self.items.entry(key.to_owned()).or_default();
        if known.call.is_some() {
            return;
        }
        known.call = Some(self.calls);
        self.calls += 1;
        let field = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        events.push_back(ModelEvent::ToolCallDelta {
            index: known.call,
            id: field("call_id").or_else(|| field("id")).map(str::to_owned),
            name: field("name").map(|name| self.names.known_as(name)),
            arguments: String::new(),
        });
        let arguments = field("arguments").unwrap_or_default().to_owned();
        self.argue(key, &arguments, events);
    }

    fn argue(&mut self, key: &str, arguments: &str, events: &mut VecDeque<ModelEvent>) {
        let Some(item) = self.items.get_mut(key).filter(|item| item.call.is_some() && !arguments.is_empty()) else {
            return;
        };
        item.said.push_str(arguments);
        let arguments = arguments.to_owned();
        events.push_back(ModelEvent::ToolCallDelta { index: item.call, id: None, name: None, arguments });
    }

    fn complete_arguments(&mut self, key: &str, whole: &str, events: &mut VecDeque<ModelEvent>) {
        let said = self.items.get(key).map_or("", |item| item.said.as_str());
        let rest = whole.strip_prefix(said).unwrap_or_default().to_owned();
        self.argue(key, &rest, events);
    }

    /// An item that is whole: whatever of it has not been passed on yet is now.
    fn complete_item(&mut self, key: &str, item: &Value, events: &mut VecDeque<ModelEvent>) {
        if self.items.get(key).is_some_and(|known| known.done) {
            return;
        }
        match item.get("type").and_then(Value::as_str) {
            Some("function_call") => {
                self.open_call(key, item, events);
                let arguments = item.get("arguments").and_then(Value::as_str).unwrap_or_default();
                self.complete_arguments(key, arguments, events);
            }
            Some("message") => self.complete_message(key, item, events),
            Some("reasoning") => {
                let thought = block(item, &self.model, self.calls, self.text_begun);
                events.push_back(ModelEvent::Reasoning(thought));
            }
            _ => {}
        }
        self.items.entry(key.to_owned()).or_default().done = true;
    }

    fn complete_message(&mut self, key: &str, item: &Value, events: &mut VecDeque<ModelEvent>) {
        let parts = item.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, part) in parts.iter().enumerate() {
            let text = |field: &str| part.get(field).and_then(Value::as_str);
            let whole = match text("refusal") {
                Some(refusal) => {
                    self.refused = Some(StopReason::ContentFilter);
                    Some(refusal)
                }
                None => text("text"),
            };
            self.complete_text(&format!("{key}/{index}"), whole.unwrap_or_default(), events);
        }
    }
}

impl Decode for Decoder {
    const FRAMING: Framing = Framing::Events;

    fn read(&mut self, data: &str, events: &mut VecDeque<ModelEvent>) -> Result<Flow, ModelError> {
        if data.trim() == "[DONE]" {
            return Ok(Flow::Ended);
        }
        let event = parse(data)?;
        if self.numbers.repeats(event.get("sequence_number").and_then(Value::as_u64)) {
            return Ok(Flow::More);
        }
        if event.get("type").is_none()
            && let Some(error) = event.get("error").filter(|error| !error.is_null())
        {
            return Err(from_stream(error.clone(), self.judge));
        }
        if !event.get("type").is_some_and(Value::is_string) {
            return Err(no_part_of("event of the Responses API"));
        }
        self.read_event(&event, events)
    }

    fn read_document(&mut self, json: &str, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let response = parse(json)?;
        if !response.get("output").is_some_and(Value::is_array) {
            return match response.get("error").filter(|error| !error.is_null()) {
                Some(error) => Err(from_stream(error.clone(), self.judge)),
                None => Err(no_part_of("response")),
            };
        }
        self.read_response(&response, events)
    }

    fn has_stopped(&self) -> bool {
        self.stop_reason.is_some()
    }

    fn finish(&mut self, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let reason = self.stop_reason.ok_or_else(empty_answer)?;
        events.extend(self.usage.map(ModelEvent::Usage));
        events.push_back(ModelEvent::Finished(reason));
        Ok(())
    }
}

/// Names an item: by its place, or by its id where a server has no places. Places go first because gateways change ids on the way.
fn item_key(event: &Value) -> String {
    let id = || event.get("item_id").or_else(|| event.pointer("/item/id")).and_then(Value::as_str).unwrap_or("0");
    let place = event.get("output_index").and_then(Value::as_u64);
    place.map_or_else(|| id().to_owned(), |place| place.to_string())
}

/// Names a part of an item.
fn key(event: &Value) -> String {
    let index = event.get("content_index").and_then(Value::as_u64).unwrap_or_default();
    format!("{}/{index}", item_key(event))
}

fn is(item: &Value, kind: &str) -> bool {
    item.get("type").is_some_and(|known| known == kind)
}

fn think(text: &str, events: &mut VecDeque<ModelEvent>) {
    if !text.is_empty() {
        events.push_back(ModelEvent::ReasoningDelta(text.to_owned()));
    }
}

fn read_usage(usage: &Value) -> Option<Usage> {
    let mut counts = Counts::of(usage);
    let read = Usage {
        cached_tokens: counts.at(&["/input_tokens_details/cached_tokens"]),
        cache_write_tokens: counts.at(&["/input_tokens_details/cache_write_tokens"]),
        reasoning_tokens: counts.at(&["/output_tokens_details/reasoning_tokens"]),
        ..Usage::plain(counts.at(&["/input_tokens"]), counts.at(&["/output_tokens"]))
    };
    counts.finish(read)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
