//! The conversation on the wire: contents made of parts.
//!
//! Signatures of thoughts go back where they came from: on the call, or behind the text. Newer models refuse a turn whose
//! first call has none; a call that another provider's model made gets the value that is documented for that case. Results of calls have a content
//! of their own, since the API compares their number with the calls before.

use serde_json::{Map, Value, json};

use super::ORIGIN;
use super::names;
use super::series::Series;
use crate::attachment;
use crate::dialogue::{CallResult, Dialogue, ModelSaid, NO_RESULT, Turn};
use crate::message::Message;
use crate::part::{Part, PartKind};
use crate::wire::ToolNames;

/// Where the result of a call stands that went well.
const OUTPUT: &str = "output";
/// Where it stands otherwise.
const ERROR: &str = "error";
/// Stands for the signature of a call that was never signed.
const UNSIGNED: &str = "skip_thought_signature_validator";
/// Media types that the API reads besides text.
const INLINE: &[&str] =
    &["application/pdf", "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "image/gif"];

/// The contents of a conversation.
pub(super) fn encode(dialogue: &Dialogue<'_>, names: &ToolNames, series: Series) -> Vec<Value> {
    let mut contents = Vec::new();
    for turn in &dialogue.turns {
        match turn {
            Turn::Person(turn) => {
                let results: Vec<Value> = turn.results.iter().map(|result| function_response(result, names)).collect();
                let shown = turn.results.iter().filter_map(|result| result.message).flat_map(|message| &message.parts);
                let mut said: Vec<Value> = shown.map(part).collect();
                for words in &turn.said {
                    said.extend(words.parts.iter().map(part));
                    said.extend(text(&words.text));
                }
                for parts in [results, said] {
                    if !parts.is_empty() {
                        contents.push(json!({ "role": "user", "parts": parts }));
                    }
                }
            }
            Turn::Model(messages) => {
                let parts: Vec<Value> = messages.iter().flat_map(|said| model(said, names, series)).collect();
                contents.push(json!({ "role": "model", "parts": parts }));
            }
        }
    }
    contents
}

fn text(words: &str) -> Option<Value> {
    (!words.trim().is_empty()).then(|| json!({ "text": words }))
}

fn part(part: &Part) -> Value {
    let media_type = attachment::essence(part);
    let inline = match part.kind {
        PartKind::Image => media_type.starts_with("image/"),
        PartKind::File => INLINE.contains(&media_type.as_str()),
    };
    if inline {
        json!({ "inlineData": { "mimeType": media_type, "data": &*part.data } })
    } else {
        json!({ "text": attachment::in_words(part) })
    }
}

fn function_response(result: &CallResult<'_>, names: &ToolNames) -> Value {
    let (key, said) = match result.message {
        Some(Message { failed: false, content, .. }) => (OUTPUT, content.as_str()),
        Some(Message { failed: true, content, .. }) => (ERROR, content.as_str()),
        None => (ERROR, NO_RESULT),
    };
    let mut response = Map::new();
    response.extend(wire_id(result.given_id, &result.id));
    response.insert("name".to_owned(), names::to_wire(names, result.name).into());
    response.insert("response".to_owned(), json!({ key: said }));
    json!({ "functionResponse": response })
}

/// The id, unless it was made up here because the model gave none.
fn wire_id(given: &str, id: &str) -> Option<(String, Value)> {
    let made_up = given.strip_prefix("call_").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    (!made_up && !given.is_empty()).then(|| ("id".to_owned(), id.into()))
}

/// The signatures of a turn that this wire wrote.
fn signatures<'a>(message: &'a Message, on: &'a str) -> impl Iterator<Item = (u32, &'a str)> {
    message.reasoning.iter().filter(|block| block.origin == ORIGIN).filter_map(move |block| {
        let at = block.payload.get("on").and_then(Value::as_str)?;
        let signature = block.payload.get("signature").and_then(Value::as_str)?;
        (at == on).then_some((block.position, signature))
    })
}

fn model(said: &ModelSaid<'_>, names: &ToolNames, series: Series) -> Vec<Value> {
    let message = said.message;
    let mut parts: Vec<Value> = text(&message.content).into_iter().collect();
    let signed_text = |calls_before: usize| {
        let here = signatures(message, "text").filter(move |(position, _)| *position as usize == calls_before);
        here.map(|(_, signature)| json!({ "text": "", "thoughtSignature": signature }))
    };
    parts.extend(signed_text(0));
    for (index, (call, id)) in message.tool_calls.iter().zip(&said.ids).enumerate() {
        let mut function = Map::new();
        function.extend(wire_id(&call.id, id));
        function.insert("name".to_owned(), names::to_wire(names, &call.name).into());
        function.insert("args".to_owned(), arguments(&call.arguments));
        let mut part = Map::new();
        part.insert("functionCall".to_owned(), Value::Object(function));
        let own = signatures(message, "call").find(|(position, _)| *position as usize == index);
        let unsigned = (index == 0 && series.demands_signatures()).then_some(UNSIGNED);
        if let Some(signature) = own.map(|(_, signature)| signature).or(unsigned) {
            part.insert("thoughtSignature".to_owned(), signature.into());
        }
        parts.push(Value::Object(part));
        parts.extend(signed_text(index + 1));
    }
    parts
}

/// The arguments of an earlier call. They have to be an object: what the model got wrong goes back to it inside one.
fn arguments(written: &str) -> Value {
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Object(fields)) => Value::Object(fields),
        Ok(_) | Err(_) => json!({ "malformed_arguments": written }),
    }
}
