//! From the chunks of a `streamGenerateContent` answer to events.
//!
//! Every chunk is a whole answer of its own with the parts that are new. The stream has no mark of its end: it ends with the
//! connection, and is whole if a chunk said why the model stopped. Calls come whole. Images that a model draws, code that
//! runs at the provider, citations and ratings are passed over: none is ever asked for.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::{ORIGIN, names};
use crate::error::{ModelError, ModelErrorClass};
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
    said: Said,
    usage: Option<Usage>,
    stop: Option<Stop>,
}

/// Whether anything was said or called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Something,
}

/// Why the model stopped, and what was said about it.
#[derive(Debug)]
struct Stop {
    reason: String,
    message: Option<String>,
}

impl Decoder {
    /// A decoder for the answer to one request.
    pub(super) fn new(names: ToolNames, judge: Judge) -> Self {
        Self {
            names,
            judge,
            calls: 0,
            seen: BTreeSet::new(),
            thoughts: String::new(),
            said: Said::Nothing,
            usage: None,
            stop: None,
        }
    }

    fn read_chunk(&mut self, chunk: &Value, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            let error = chunk.get("error").cloned().unwrap_or_default();
            return Err(from_stream(error, self.judge));
        }
        let known = ["candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"];
        if !known.iter().any(|field| chunk.get(field).is_some()) {
            return Err(no_part_of("generated content"));
        }
        if let Some(usage) = chunk.get("usageMetadata") {
            self.usage = counted(usage);
        }
        if let Some(reason) = chunk.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            let said = chunk.pointer("/promptFeedback/blockReasonMessage").and_then(Value::as_str);
            return Err(withheld("the prompt was refused", reason, said));
        }
        let candidates = chunk.get("candidates").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // One answer is asked for; a server that sends more has its first one taken.
        let first = candidates.iter().find(|one| one.get("index").and_then(Value::as_u64).unwrap_or_default() == 0);
        let Some(candidate) = first else { return Ok(()) };
        // The model has stopped: what comes behind that is not its answer.
        if self.stop.is_some() {
            let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
            if parts.is_some_and(|parts| !parts.is_empty()) {
                events.push_back(ModelEvent::Repaired("what came after the end of the answer was left out".to_owned()));
            }
            return Ok(());
        }
        for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
            self.read_part(part, events);
        }
        let reason = candidate.get("finishReason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| *reason != "FINISH_REASON_UNSPECIFIED") {
            let message = candidate.get("finishMessage").and_then(Value::as_str).map(str::to_owned);
            self.stop = Some(Stop { reason: reason.to_owned(), message });
        }
        Ok(())
    }

    fn read_part(&mut self, part: &Value, events: &mut VecDeque<ModelEvent>) {
        let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
        let signature = part.get("thoughtSignature").and_then(Value::as_str).filter(|signature| !signature.is_empty());
        if part.get("thought").and_then(Value::as_bool).unwrap_or_default() {
            if !text.is_empty() {
                self.thoughts.push_str(text);
                events.push_back(ModelEvent::ReasoningDelta(text.to_owned()));
            }
            events.extend(signature.map(|signature| signed("text", signature, self.calls)));
            return;
        }
        self.end_thoughts(events);
        if let Some(call) = part.get("functionCall").filter(|call| call.is_object()) {
            let field = |name: &str| call.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            if field("id").is_some_and(|id| !self.seen.insert(id.to_owned())) {
                // The same call again: making it twice would be worse than not at all.
                events.push_back(ModelEvent::Repaired("a call that was sent twice was taken once".to_owned()));
                return;
            }
            let index = self.calls;
            self.calls = self.calls.saturating_add(1);
            self.said = Said::Something;
            // Signatures stand before the call they belong to, as thoughts do.
            events.extend(signature.map(|signature| signed("call", signature, index)));
            events.push_back(ModelEvent::ToolCallDelta {
                index: Some(index),
                id: field("id").map(str::to_owned),
                name: Some(names::known_as(&self.names, field("name").unwrap_or_default())),
                arguments: call
                    .get("args")
                    .filter(|args| !args.is_null())
                    .map_or_else(|| "{}".to_owned(), Value::to_string),
            });
            return;
        }
        if !text.is_empty() {
            self.said = Said::Something;
            events.push_back(ModelEvent::TextDelta(text.to_owned()));
        }
        events.extend(signature.map(|signature| signed("text", signature, self.calls)));
    }

    /// What was thought so far, as one block for people; the signatures are what goes back.
    fn end_thoughts(&mut self, events: &mut VecDeque<ModelEvent>) {
        if !self.thoughts.is_empty() {
            let text = std::mem::take(&mut self.thoughts);
            let block = ReasoningBlock { origin: ORIGIN.to_owned(), text, payload: Value::Null, position: self.calls };
            events.push_back(ModelEvent::Reasoning(block));
        }
    }
}

impl Decode for Decoder {
    const FRAMING: Framing = Framing::Events;

    fn read(&mut self, data: &str, events: &mut VecDeque<ModelEvent>) -> Result<Flow, ModelError> {
        let chunk = parse(data)?;
        self.read_chunk(&chunk, events)?;
        Ok(Flow::More)
    }

    /// Without `alt=sse` the answer is a list of chunks; some gateways drop the query.
    fn read_document(&mut self, json: &str, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let document = parse(json)?;
        match document {
            Value::Array(chunks) => chunks.iter().try_for_each(|chunk| self.read_chunk(chunk, events)),
            chunk => self.read_chunk(&chunk, events),
        }
    }

    fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(&mut self, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        self.end_thoughts(events);
        let Some(stop) = &self.stop else {
            let line = "the model server ended its answer without saying why the model stopped";
            return Err(ModelError::new(ModelErrorClass::Network, line));
        };
        let said = stop.message.as_deref();
        let reason = match stop.reason.as_str() {
            "STOP" => StopReason::EndTurn,
            // The second could be gone on with; a cut answer is what the caller knows how to go on with.
            "MAX_TOKENS" | "CONTINUATION" => StopReason::MaxTokens,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "IMAGE_OTHER"
            | "NO_IMAGE" => {
                if self.said == Said::Nothing {
                    return Err(withheld("the answer was withheld", &stop.reason, said));
                }
                StopReason::ContentFilter
            }
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
                let said = said.unwrap_or("no explanation");
                return Err(ModelError::malformed(format!("the model's answer is unusable ({}): {said}", stop.reason)));
            }
            "MISSING_THOUGHT_SIGNATURE" => {
                let line =
                    "the server misses a signature of the model's thoughts; start a new session or use another model";
                return Err(ModelError::new(ModelErrorClass::Permanent, line));
            }
            "OTHER" if self.said == Said::Nothing => {
                let line =
                    format!("the model stopped for a reason it does not name: {}", said.unwrap_or("no explanation"));
                return Err(ModelError::new(ModelErrorClass::Transient, line));
            }
            _ => StopReason::Other,
        };
        events.extend(self.usage.map(ModelEvent::Usage));
        events.push_back(ModelEvent::Finished(reason));
        Ok(())
    }
}

fn signed(on: &str, signature: &str, position: u32) -> ModelEvent {
    let payload = json!({ "on": on, "signature": signature });
    ModelEvent::Reasoning(ReasoningBlock { origin: ORIGIN.to_owned(), text: String::new(), payload, position })
}

fn withheld(what: &str, reason: &str, said: Option<&str>) -> ModelError {
    let said = said.map(|said| format!(": {said}")).unwrap_or_default();
    ModelError::new(ModelErrorClass::ContentPolicy, format!("{what} by the provider's content rules ({reason}){said}"))
}

fn counted(usage: &Value) -> Option<Usage> {
    let mut counts = Counts::of(usage);
    let thoughts = counts.at(&["/thoughtsTokenCount"]);
    let read = Usage {
        input_tokens: counts.at(&["/promptTokenCount"]).saturating_add(counts.at(&["/toolUsePromptTokenCount"])),
        output_tokens: counts.at(&["/candidatesTokenCount"]).saturating_add(thoughts),
        cached_tokens: counts.at(&["/cachedContentTokenCount"]),
        reasoning_tokens: thoughts,
        ..Usage::default()
    };
    counts.finish(read)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::any_json::{any_json, stands};
    use crate::wire::no_verdict;

    const KEYS: &[&str] = &[
        "candidates",
        "content",
        "parts",
        "text",
        "thought",
        "thoughtSignature",
        "functionCall",
        "id",
        "name",
        "args",
        "finishReason",
        "finishMessage",
        "index",
        "usageMetadata",
        "promptTokenCount",
        "thoughtsTokenCount",
        "promptFeedback",
        "blockReason",
    ];
    const WORDS: &[&str] =
        &["STOP", "MAX_TOKENS", "SAFETY", "OTHER", "MALFORMED_FUNCTION_CALL", "palyra__fs__read", "c2ln"];

    fn chunk(parts: &[Value], reason: &str) -> Value {
        json!({ "candidates": [{ "content": { "parts": parts }, "finishReason": reason }] })
    }

    #[test]
    fn a_call_after_the_end_of_the_answer_is_left_out() {
        let mut decoder = Decoder::new(ToolNames::default(), no_verdict);
        let mut events = VecDeque::new();
        let call = json!({ "functionCall": { "name": "t", "args": {} } });
        for chunk in [chunk(&[json!({ "text": "done" })], "STOP"), chunk(&[call], "STOP")] {
            decoder.read(&chunk.to_string(), &mut events).unwrap();
        }
        decoder.finish(&mut events).unwrap();
        assert!(!events.iter().any(|event| matches!(event, ModelEvent::ToolCallDelta { .. })), "{events:?}");
        assert_eq!(events.back(), Some(&ModelEvent::Finished(StopReason::EndTurn)));
        assert!(events.iter().any(|event| matches!(event, ModelEvent::Repaired(_))), "it is said");
    }

    proptest! {
        #[test]
        fn no_stream_confuses_it(
            documents in prop::collection::vec(any_json(KEYS, WORDS), 0..6),
            parts in prop::collection::vec(any_json(KEYS, WORDS), 0..6),
            reason in prop::sample::select(WORDS),
        ) {
            stands(Decoder::new(ToolNames::default(), no_verdict), &documents);
            stands(Decoder::new(ToolNames::default(), no_verdict), &[chunk(&parts, reason)]);
        }
    }
}
