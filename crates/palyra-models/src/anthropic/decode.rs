//! From the events of a Messages stream to events of an answer.
//!
//! The stream is one message: blocks that open, grow and close by their index, then why it stopped, then its end. Text and
//! thinking are passed on as they grow; a block of thinking is also kept whole, since it has to go back as it came. Citations
//! and the blocks of tools that run at the provider are passed over: none is ever asked for. New kinds of events and blocks are passed over
//! too, as the API's rules for versions demand.
//!
//! Where a tool takes the answer, its first call is the answer and nothing else is: models say something before it or call it again. Words
//! beside it are held back, and told only if it is never called.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::ORIGIN;
use super::shape::{AnswerTool, Holds};
use super::usage::Counted;
use crate::error::{ModelError, ModelErrorClass};
use crate::event::{ModelEvent, StopReason};
use crate::reasoning::ReasoningBlock;
use crate::wire::{Decode, Flow, Framing, Judge, ToolNames, from_stream, no_part_of, parse};

/// Most blocks of one answer; real ones have a few dozen. Each costs memory until the end.
const MAX_BLOCKS: usize = 4096;

/// Most bytes that are held back at a time: what is not passed on at once counts nowhere else.
const MAX_HELD: usize = 16 * 1024 * 1024;

/// A block that has opened and not closed.
#[derive(Debug)]
enum Open {
    Text,
    /// What has been thought so far, its signature, and how many calls and bytes of text stood before it.
    Thinking {
        text: String,
        signature: String,
        position: u32,
        text_before: usize,
    },
    /// A call: its number, the input it opened with, and whether more of it has come.
    Call {
        index: u32,
        input: Value,
        grown: Grown,
    },
    /// The answer as the input of a tool.
    Answer {
        holds: Holds,
        written: String,
        input: Value,
    },
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grown {
    No,
    Yes,
}

/// Turns one answer into events.
#[derive(Debug)]
pub(super) struct Decoder {
    names: ToolNames,
    answer_tool: Option<AnswerTool>,
    judge: Judge,
    open: BTreeMap<u64, Open>,
    closed: BTreeSet<u64>,
    calls: u32,
    text_bytes: usize,
    usage: Counted,
    usage_told: Told,
    answered: Answered,
    /// Words beside the answer, while it is not known whether one comes.
    aside: String,
    /// Bytes held back so far.
    held: usize,
    stop: Option<Stop>,
}

/// Whether the tool that takes the answer has been called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    No,
    Yes,
}

/// Whether usage has been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    No,
    Yes,
}

/// Why the model stopped, and what was said about it.
#[derive(Debug)]
struct Stop {
    reason: String,
    explanation: Option<String>,
}

impl Decoder {
    /// A decoder for the answer to one request.
    pub(super) fn new(names: ToolNames, answer_tool: Option<AnswerTool>, judge: Judge) -> Self {
        Self {
            names,
            answer_tool,
            judge,
            open: BTreeMap::new(),
            closed: BTreeSet::new(),
            calls: 0,
            text_bytes: 0,
            usage: Counted::default(),
            usage_told: Told::No,
            answered: Answered::No,
            aside: String::new(),
            held: 0,
            stop: None,
        }
    }

    fn start_block(&mut self, event: &Value, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let index = index(event)?;
        if self.open.contains_key(&index) || self.closed.contains(&index) {
            // Opening it again would double what was said, or make a call twice.
            events.push_back(ModelEvent::Repaired("a block that was sent twice was taken once".to_owned()));
            return Ok(());
        }
        if self.open.len() + self.closed.len() >= MAX_BLOCKS {
            return Err(ModelError::malformed("the answer has more than 4096 blocks"));
        }
        let block = event.get("content_block").unwrap_or(&Value::Null);
        let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let open = match field("type") {
            "text" => {
                self.say(field("text"), events);
                Open::Text
            }
            "thinking" => {
                let mut open = Open::Thinking {
                    text: String::new(),
                    signature: field("signature").to_owned(),
                    position: self.calls,
                    text_before: self.text_bytes,
                };
                if let Open::Thinking { text, .. } = &mut open {
                    think(text, field("thinking"), events);
                }
                open
            }
            "redacted_thinking" => {
                let sealed = json!({ "type": "redacted_thinking", "data": field("data") });
                events.push_back(thought(String::new(), &sealed, self.calls, self.text_bytes));
                Open::Other
            }
            "tool_use" => {
                let input = block.get("input").cloned().unwrap_or_default();
                match self.answer_tool.as_ref().filter(|tool| tool.name == field("name")) {
                    Some(_) if self.answered == Answered::Yes => {
                        events
                            .push_back(ModelEvent::Repaired("only the first of several answers was taken".to_owned()));
                        Open::Other
                    }
                    Some(tool) => {
                        self.answered = Answered::Yes;
                        Open::Answer { holds: tool.holds, written: String::new(), input }
                    }
                    None => {
                        let call = self.calls;
                        self.calls = self.calls.saturating_add(1);
                        events.push_back(ModelEvent::ToolCallDelta {
                            index: Some(call),
                            id: Some(field("id").to_owned()).filter(|id| !id.is_empty()),
                            name: Some(self.names.known_as(field("name"))),
                            arguments: String::new(),
                        });
                        Open::Call { index: call, input, grown: Grown::No }
                    }
                }
            }
            _ => Open::Other,
        };
        self.open.insert(index, open);
        Ok(())
    }

    fn grow_block(&mut self, event: &Value, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let delta = event.get("delta").unwrap_or(&Value::Null);
        let field = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = field("type");
        let index = index(event)?;
        // Never less than what is held: parts that are passed on at once are counted too.
        let parts = ["text", "thinking", "signature", "partial_json"].map(|name| field(name).len());
        self.held = self.held.saturating_add(parts.iter().sum());
        if self.held > MAX_HELD {
            return Err(ModelError::malformed("the answer is larger than 16 MiB"));
        }
        if self.closed.contains(&index) {
            return Ok(());
        }
        let Some(open) = self.open.get_mut(&index) else {
            // A part of a block that never opened belongs nowhere; text alone can be taken as it is.
            if kind == "text_delta" {
                self.say(field("text"), events);
                return Ok(());
            }
            return match kind {
                "input_json_delta" => Err(ModelError::malformed("the answer holds a part of a call that never began")),
                _ => Ok(()),
            };
        };
        match (kind, open) {
            ("text_delta", _) => self.say(field("text"), events),
            ("thinking_delta", Open::Thinking { text, .. }) => think(text, field("thinking"), events),
            ("signature_delta", Open::Thinking { signature, .. }) => signature.push_str(field("signature")),
            ("input_json_delta", Open::Call { index, grown, .. }) => {
                let arguments = field("partial_json").to_owned();
                if !arguments.is_empty() {
                    *grown = Grown::Yes;
                    events.push_back(ModelEvent::ToolCallDelta {
                        index: Some(*index),
                        id: None,
                        name: None,
                        arguments,
                    });
                }
            }
            ("input_json_delta", Open::Answer { holds, written, .. }) => {
                let part = field("partial_json").to_owned();
                written.push_str(&part);
                if *holds == Holds::Answer {
                    self.answer(&part, events);
                }
            }
            // Citations, and kinds that are not known.
            _ => {}
        }
        Ok(())
    }

    fn close_block(&mut self, index: u64, events: &mut VecDeque<ModelEvent>) {
        let open = self.open.remove(&index);
        if open.is_some() {
            self.closed.insert(index);
        }
        match open {
            Some(Open::Thinking { text, signature, position, text_before }) => {
                let block = json!({ "type": "thinking", "thinking": text, "signature": signature });
                events.push_back(thought(text, &block, position, text_before));
            }
            Some(Open::Call { index, input, grown: Grown::No }) if has_fields(&input) => {
                let arguments = input.to_string();
                events.push_back(ModelEvent::ToolCallDelta { index: Some(index), id: None, name: None, arguments });
            }
            Some(Open::Answer { holds, written, input }) => {
                let given = if written.is_empty() { input } else { serde_json::from_str(&written).unwrap_or_default() };
                match holds {
                    Holds::Answer if written.is_empty() => self.answer(&given.to_string(), events),
                    Holds::Answer => {}
                    // What cannot be unwrapped is passed on as it is; whoever asked checks it.
                    Holds::Wrapped => {
                        let answer = given.get("answer").map_or(written, Value::to_string);
                        self.answer(&answer, events);
                    }
                }
            }
            Some(Open::Text | Open::Call { .. } | Open::Other) | None => {}
        }
    }

    fn close_all(&mut self, events: &mut VecDeque<ModelEvent>) {
        let left: Vec<u64> = self.open.keys().copied().collect();
        for index in left {
            self.close_block(index, events);
        }
    }

    fn say(&mut self, text: &str, events: &mut VecDeque<ModelEvent>) {
        if self.answer_tool.is_some() {
            self.aside.push_str(text);
        } else {
            self.answer(text, events);
        }
    }

    fn answer(&mut self, text: &str, events: &mut VecDeque<ModelEvent>) {
        if !text.is_empty() {
            self.text_bytes = self.text_bytes.saturating_add(text.len());
            events.push_back(ModelEvent::TextDelta(text.to_owned()));
        }
    }

    fn stopped(&mut self, delta: &Value) {
        let Some(reason) = delta.get("stop_reason").and_then(Value::as_str) else { return };
        let explanation = delta.get("stop_details").and_then(|details| {
            let text = |field: &str| details.get(field).and_then(Value::as_str).map(str::to_owned);
            text("explanation").or_else(|| text("category"))
        });
        self.stop = Some(Stop { reason: reason.to_owned(), explanation });
    }

    /// A message that came whole.
    fn read_message(&mut self, message: &Value, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        self.usage.read(message.get("usage"));
        let blocks = message.get("content").and_then(Value::as_array);
        for (index, block) in blocks.into_iter().flatten().enumerate() {
            self.start_block(&json!({ "index": index, "content_block": block }), events)?;
            self.close_block(index as u64, events);
        }
        self.stopped(message);
        Ok(())
    }
}

impl Decode for Decoder {
    const FRAMING: Framing = Framing::Events;

    fn read(&mut self, data: &str, events: &mut VecDeque<ModelEvent>) -> Result<Flow, ModelError> {
        let event = parse(data)?;
        match event.get("type").and_then(Value::as_str) {
            // The model has stopped: a block behind that is not its answer.
            Some("content_block_start" | "content_block_delta") if self.stop.is_some() => {
                events.push_back(ModelEvent::Repaired("what came after the end of the answer was left out".to_owned()));
            }
            Some("message_start") => self.usage.read(event.pointer("/message/usage")),
            Some("content_block_start") => {
                // Told once something is answered, so that a call that breaks off later is not thought to have cost nothing.
                if std::mem::replace(&mut self.usage_told, Told::Yes) == Told::No {
                    events.extend(self.usage.total().map(ModelEvent::Usage));
                }
                self.start_block(&event, events)?;
            }
            Some("content_block_delta") => self.grow_block(&event, events)?,
            Some("content_block_stop") => self.close_block(index(&event)?, events),
            Some("message_delta") => {
                self.usage.read(event.get("usage"));
                self.stopped(event.get("delta").unwrap_or(&Value::Null));
            }
            Some("message_stop") => return Ok(Flow::Ended),
            Some("message") => {
                self.read_message(&event, events)?;
                return Ok(Flow::Ended);
            }
            Some("error") => return Err(from_stream(event, self.judge)),
            // `ping`, and kinds that came later than this was written.
            Some(_) => {}
            None if event.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(from_stream(event, self.judge));
            }
            None => return Err(no_part_of("event of a message")),
        }
        Ok(Flow::More)
    }

    fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(&mut self, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        self.close_all(events);
        let aside = std::mem::take(&mut self.aside);
        if self.answered == Answered::No {
            self.answer(&aside, events);
        } else if !aside.trim().is_empty() {
            events.push_back(ModelEvent::Repaired("words beside the answer were left out".to_owned()));
        }
        let produced = self.calls > 0 || self.text_bytes > 0;
        let Some(stop) = &self.stop else {
            let line = "the model server ended its answer without saying why the model stopped";
            return Err(ModelError::new(ModelErrorClass::Network, line));
        };
        if stop.reason == "refusal" && !produced {
            let why = stop.explanation.as_deref().unwrap_or("no reason was given");
            let line = format!("the model declined to answer: {why}");
            return Err(ModelError::new(ModelErrorClass::ContentPolicy, line));
        }
        let reason = stop_reason(&stop.reason);
        events.extend(self.usage.total().map(ModelEvent::Usage));
        events.push_back(ModelEvent::Finished(reason));
        Ok(())
    }
}

fn index(event: &Value) -> Result<u64, ModelError> {
    let index = event.get("index").and_then(Value::as_u64);
    index.ok_or_else(|| ModelError::malformed("the answer holds a part of a block without its index"))
}

fn think(text: &mut String, more: &str, events: &mut VecDeque<ModelEvent>) {
    if !more.is_empty() {
        text.push_str(more);
        events.push_back(ModelEvent::ReasoningDelta(more.to_owned()));
    }
}

fn thought(text: String, block: &Value, position: u32, text_before: usize) -> ModelEvent {
    let payload = json!({ "block": block, "text_before": text_before });
    ModelEvent::Reasoning(ReasoningBlock { origin: ORIGIN.to_owned(), text, payload, position })
}

fn has_fields(input: &Value) -> bool {
    input.as_object().is_some_and(|fields| !fields.is_empty())
}

fn stop_reason(text: &str) -> StopReason {
    match text {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "refusal" => StopReason::ContentFilter,
        // `pause_turn` belongs to tools that run at the provider.
        _ => StopReason::Other,
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
