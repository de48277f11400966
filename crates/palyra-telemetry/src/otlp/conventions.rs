//! Palyra's words for work in the words of the OpenTelemetry conventions for generative AI.
//!
//! INVARIANT: this table is the list of what leaves the machine. An attribute that is not in it is dropped, events are dropped, a value longer than a name ever
//! is is cut, an error is exported only if it looks like a stable code, and content passes only with [`ContentCapture::On`].

use std::borrow::Cow;

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{Key, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents};

use super::ContentCapture;
use crate::work::Work;

/// Names and ids are shorter than this; more is somebody's text in the wrong place.
const LONGEST_NAME: usize = 256;
/// Content beyond this is cut: collectors refuse large messages, and a batch holds hundreds of spans.
const LONGEST_CONTENT: usize = 32 * 1024;

/// The exported form of a span, or nothing if it is no work.
pub(super) fn translate(mut span: SpanData, content: ContentCapture) -> Option<SpanData> {
    let work = Work::named(&span.name)?;
    let events = std::mem::take(&mut span.events);
    let mut attributes: Vec<KeyValue> =
        std::mem::take(&mut span.attributes).into_iter().filter_map(|given| attribute(work, given)).collect();
    let subject = subject(work, &attributes);
    attributes.extend(constants(work));
    if let Some(provider) = value_of(&attributes, "gen_ai.provider.name") {
        // What the attribute was called until 2025; many collectors still read it.
        attributes.push(KeyValue::new("gen_ai.system", provider));
    }
    if content == ContentCapture::On {
        attributes.extend(contents(&events));
    }
    if let Some(code) = value_of(&attributes, "error.type") {
        span.status = Status::error(code);
    }
    let operation = match work {
        Work::Command => None,
        Work::Run => Some("invoke_agent"),
        Work::ModelCall => Some("chat"),
        Work::ToolCall => Some("execute_tool"),
    };
    span.name = match (operation, subject) {
        (Some(operation), Some(subject)) => Cow::Owned(format!("{operation} {subject}")),
        (Some(operation), None) => Cow::Borrowed(operation),
        (None, Some(subject)) => Cow::Owned(subject),
        (None, None) => Cow::Borrowed("command"),
    };
    span.span_kind = match work {
        Work::Command => SpanKind::Server,
        Work::ModelCall => SpanKind::Client,
        Work::Run | Work::ToolCall => SpanKind::Internal,
    };
    span.attributes = attributes;
    span.dropped_attributes_count = 0;
    span.events = SpanEvents::default();
    Some(span)
}

/// Attributes that are numbers, whatever way they come in.
const NUMBERS: [&str; 3] = ["palyra.turn", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"];

/// The name under which a field is exported, if it is.
fn exported_name(work: Work, field: &str) -> Option<&'static str> {
    let name = match (work, field) {
        (_, "run_id") => "palyra.run.id",
        (_, "session_id") => "gen_ai.conversation.id",
        (_, "principal") => "palyra.principal",
        (_, "outcome") => "palyra.outcome",
        (_, "error") => "error.type",
        (Work::Command, "command") => "palyra.command",
        (Work::Command, "transport") => "palyra.transport",
        (Work::Run, "phase") => "palyra.run.phase",
        (Work::Run, "reason") => "palyra.run.reason",
        (Work::ModelCall, "provider") => "gen_ai.provider.name",
        (Work::ModelCall, "model") => "gen_ai.request.model",
        (Work::ModelCall, "turn") => "palyra.turn",
        (Work::ModelCall, "input_tokens") => "gen_ai.usage.input_tokens",
        (Work::ModelCall, "output_tokens") => "gen_ai.usage.output_tokens",
        (Work::ToolCall, "tool") => "gen_ai.tool.name",
        (Work::ToolCall, "call_id") => "gen_ai.tool.call.id",
        _ => return None,
    };
    Some(name)
}

fn attribute(work: Work, given: KeyValue) -> Option<KeyValue> {
    let name = exported_name(work, given.key.as_str())?;
    let value = match given.value {
        Value::String(text) if name == "error.type" && !is_stable_code(text.as_str()) => return None,
        // Numbers without a sign arrive as text.
        Value::String(text) if NUMBERS.contains(&name) => Value::I64(text.as_str().parse().ok()?),
        Value::String(text) => Value::from(cut(text.as_str(), LONGEST_NAME)),
        Value::I64(_) | Value::Bool(_) | Value::F64(_) => given.value,
        _ => return None,
    };
    Some(KeyValue::new(name, value))
}

/// What stands in the span's name after the operation.
fn subject(work: Work, attributes: &[KeyValue]) -> Option<String> {
    let name = match work {
        Work::Command => "palyra.command",
        Work::Run => return Some("palyra".to_owned()),
        Work::ModelCall => "gen_ai.request.model",
        Work::ToolCall => "gen_ai.tool.name",
    };
    value_of(attributes, name).filter(|value| !value.is_empty())
}

/// What is always the same for a kind of work.
fn constants(work: Work) -> Vec<KeyValue> {
    let operation = |name| KeyValue::new("gen_ai.operation.name", name);
    match work {
        Work::Command => Vec::new(),
        Work::Run => vec![operation("invoke_agent"), KeyValue::new("gen_ai.agent.name", "palyra")],
        Work::ModelCall => vec![operation("chat")],
        Work::ToolCall => vec![operation("execute_tool"), KeyValue::new("gen_ai.tool.type", "function")],
    }
}

/// Content that was said during the span, as attributes of it.
fn contents(events: &SpanEvents) -> Vec<KeyValue> {
    let given = events.events.iter().flat_map(|event| event.attributes.iter());
    let mut found: Vec<KeyValue> = Vec::new();
    for (field, value) in given.map(|given| (given.key.as_str(), &given.value)) {
        let name = match field {
            "input" => "gen_ai.input.messages",
            "output" => "gen_ai.output.messages",
            "arguments" => "gen_ai.tool.call.arguments",
            "result" => "gen_ai.tool.call.result",
            _ => continue,
        };
        if let Value::String(text) = value {
            found.retain(|earlier| earlier.key != Key::from_static_str(name));
            found.push(KeyValue::new(name, cut(text.as_str(), LONGEST_CONTENT)));
        }
    }
    found
}

fn value_of(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().rev().find(|attribute| attribute.key.as_str() == name)?;
    Some(found.value.as_str().into_owned())
}

fn is_stable_code(text: &str) -> bool {
    text.len() <= 64
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
}

/// The beginning of a text, at most so many bytes and no half character.
fn cut(text: &str, most: usize) -> String {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "conventions_tests.rs"]
mod tests;
