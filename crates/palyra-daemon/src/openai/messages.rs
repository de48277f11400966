//! Reading the messages of a chat: one vocabulary for what was said, whichever way it was written.

use serde_json::Value;

use super::fields::Fields;
use super::images::{self, Image};
use super::unsupported;
use crate::dispatch::{Refusal, Result};

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// By the program that asks, about how to answer.
    Instructions(String),
    /// By its user.
    User(String),
    /// Shown by its user.
    Image(Image),
    /// By the model: a text, and calls of the client's tools by their names.
    Assistant { text: String, calls: Vec<String> },
    /// By a tool of the client.
    Result { call: String, content: String, at: String },
}

/// Reads the messages of a request.
pub(super) fn read(messages: Vec<Value>) -> Result<Vec<Said>> {
    if messages.is_empty() {
        return Err(Refusal::field("messages", "there is none"));
    }
    let mut said = Vec::new();
    for (index, value) in messages.into_iter().enumerate() {
        message(value, format!("messages[{index}]"), &mut said)?;
    }
    Ok(said)
}

/// Reads one message; a text and the images beside it are said one after the other.
fn message(value: Value, at: String, into: &mut Vec<Said>) -> Result<()> {
    let mut fields = Fields::of(value, at)?;
    let role = fields.needed_text("role")?;
    // Who of several people speaks is told in the text, if anywhere.
    fields.pass_over(&["name"]);
    let said = match role.as_str() {
        "system" | "developer" => Said::Instructions(content(&mut fields)?),
        "user" => {
            let at = fields.path("content");
            let Some(value) = fields.take("content") else { return Err(Refusal::field(&at, "it is missing")) };
            user(value, &at, into)?;
            return fields.end();
        }
        "assistant" => assistant(&mut fields)?,
        "tool" => Said::Result {
            call: fields.needed_text("tool_call_id")?,
            content: content(&mut fields)?,
            at: fields.path("tool_call_id"),
        },
        _ => return Err(Refusal::field(&fields.path("role"), "it must be system, developer, user, assistant or tool")),
    };
    fields.end()?;
    into.push(said);
    Ok(())
}

/// What a user says and shows.
pub(super) fn user(content: Value, at: &str, into: &mut Vec<Said>) -> Result<()> {
    let (text, images) = parts_of(content, at)?;
    if images.is_empty() || !text.trim().is_empty() {
        into.push(Said::User(text));
    }
    into.extend(images.into_iter().map(Said::Image));
    Ok(())
}

fn assistant(fields: &mut Fields) -> Result<Said> {
    let mut calls = Vec::new();
    for (index, call) in fields.list("tool_calls")?.into_iter().enumerate() {
        let mut call = Fields::of(call, format!("{}[{index}]", fields.path("tool_calls")))?;
        calls.push(call.needed_text("id")?);
    }
    // What clients send back of an answer besides its text and its calls.
    fields.pass_over(&["annotations", "reasoning", "reasoning_content", "reasoning_details"]);
    fields.only_if("function_call", |_| false, "calls are in `tool_calls`")?;
    fields.only_if("audio", |_| false, "only text is supported")?;
    let refusal = fields.text("refusal")?;
    let text = match fields.take("content") {
        None => refusal.unwrap_or_default(),
        Some(value) => text_of(value, &fields.path("content"))?,
    };
    if text.is_empty() && calls.is_empty() {
        return Err(Refusal::field(&fields.path("content"), "it is missing"));
    }
    Ok(Said::Assistant { text, calls })
}

fn content(fields: &mut Fields) -> Result<String> {
    match fields.take("content") {
        None => Err(Refusal::field(&fields.path("content"), "it is missing")),
        Some(value) => text_of(value, &fields.path("content")),
    }
}

/// A text, or a list of parts that are texts.
pub(super) fn text_of(value: Value, at: &str) -> Result<String> {
    match parts_of(value, at)? {
        (text, images) if images.is_empty() => Ok(text),
        _ => Err(unsupported(at, "images are supported only in user messages")),
    }
}

/// A text, or a list of parts that are texts and images.
fn parts_of(value: Value, at: &str) -> Result<(String, Vec<Image>)> {
    let parts = match value {
        Value::String(text) => return Ok((text, Vec::new())),
        Value::Array(parts) => parts,
        _ => return Err(Refusal::field(at, "it must be a string or a list of parts")),
    };
    let (mut texts, mut found) = (Vec::new(), Vec::new());
    for (index, part) in parts.into_iter().enumerate() {
        let mut part = Fields::of(part, format!("{at}[{index}]"))?;
        let kind = part.needed_text("type")?;
        match kind.as_str() {
            "text" | "input_text" | "output_text" => texts.push(part.needed_text("text")?),
            "refusal" => texts.push(part.needed_text("refusal")?),
            "image_url" | "input_image" => found.push(images::read(&mut part)?),
            _ => return Err(unsupported(&part.path("type"), "only text and image parts are supported")),
        }
    }
    Ok((texts.join("\n"), found))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_all(value: Value) -> Result<Vec<Said>> {
        let Value::Array(messages) = value else { panic!("not a list") };
        read(messages)
    }

    fn image(address: &str) -> Value {
        json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": address, "detail": "low"}}]}])
    }

    #[test]
    fn images_are_said_after_the_text_beside_them() {
        let said = read_all(json!([{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,YQ=="}},
            {"type": "text", "text": "what is it?"},
        ]}]))
        .unwrap();
        assert!(matches!(&said[..], [Said::User(text), Said::Image(_)] if text == "what is it?"), "{said:?}");
        assert!(matches!(&read_all(image("data:image/gif;base64,YQ==")).unwrap()[..], [Said::Image(_)]));
    }

    #[test]
    fn every_form_of_a_message_is_read() {
        let said = read_all(json!([
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "ada"},
            {"role": "assistant", "content": null, "refusal": null, "annotations": [], "function_call": null,
             "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "42"},
            {"role": "assistant", "content": "done"},
        ]))
        .unwrap();
        let assistant = |text: &str, calls: &[&str]| Said::Assistant {
            text: text.into(),
            calls: calls.iter().map(|&call| call.into()).collect(),
        };
        let result =
            Said::Result { call: "call_1".into(), content: "42".into(), at: "messages[3].tool_call_id".into() };
        assert_eq!(
            said,
            [
                Said::Instructions("be brief".into()),
                Said::User("a\nb".into()),
                assistant("", &["call_1"]),
                result,
                assistant("done", &[]),
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (messages, field) in [
            (json!([]), "messages"),
            (json!([7]), "messages[0]"),
            (json!([{"content": "x"}]), "messages[0].role"),
            (json!([{"role": "function", "content": "x"}]), "messages[0].role"),
            (json!([{"role": "user"}]), "messages[0].content"),
            (json!([{"role": "user", "content": 7}]), "messages[0].content"),
            (
                json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]),
                "messages[0].content[0].type",
            ),
            (
                json!([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]),
                "messages[0].content[0].image_url.url",
            ),
            (image("https://example.com/a.png"), "messages[0].content[0].image_url"),
            (image("data:text/html;base64,YQ=="), "messages[0].content[0].image_url"),
            (image("data:image/png;base64,a"), "messages[0].content[0].image_url"),
            (
                json!([{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,YQ=="}}]}]),
                "messages[0].content",
            ),
            (json!([{"role": "assistant"}]), "messages[0].content"),
            (json!([{"role": "assistant", "tool_calls": [{}]}]), "messages[0].tool_calls[0].id"),
            (json!([{"role": "tool", "content": "x"}]), "messages[0].tool_call_id"),
            (json!([{"role": "user", "content": "x", "mood": 1}]), "messages[0].mood"),
        ] {
            let error = read_all(messages.clone()).unwrap_err().into_envelope();
            assert_eq!(error.validation_errors[0].field, field, "{messages}");
        }
    }
}
