//! Reading the `input` of a response: a text, or items, in the vocabulary of `messages`.

use serde_json::Value;

use super::fields::Fields;
use super::messages::{Said, text_of, user};
use super::unsupported;
use crate::dispatch::{Refusal, Result};

/// One thing of an input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// What was said.
    Said(Said),
    /// Something of an earlier response, by its id.
    Reference { id: String, at: String },
}

/// Reads the input of a request.
pub(super) fn read(input: Option<Value>) -> Result<Vec<Item>> {
    match input {
        None => Err(Refusal::field("input", "it is missing")),
        Some(Value::String(text)) => Ok(vec![Item::Said(Said::User(text))]),
        Some(Value::Array(items)) if items.is_empty() => Err(Refusal::field("input", "there is none")),
        Some(Value::Array(items)) => {
            let mut read = Vec::new();
            for (index, value) in items.into_iter().enumerate() {
                item(value, format!("input[{index}]"), &mut read)?;
            }
            Ok(read)
        }
        Some(_) => Err(Refusal::field("input", "it must be a string or a list of items")),
    }
}

/// One item; nothing for what a model thought, which no other model can use.
fn item(value: Value, at: String, into: &mut Vec<Item>) -> Result<()> {
    let mut fields = Fields::of(value, at)?;
    let kind = fields.text("type")?.unwrap_or_else(|| "message".to_owned());
    if kind == "item_reference" {
        into.push(Item::Reference { id: fields.needed_text("id")?, at: fields.path("id") });
        return fields.end();
    }
    // Clients send items back as they got them.
    fields.pass_over(&["id", "status", "phase"]);
    match kind.as_str() {
        "message" => {
            let mut said = Vec::new();
            message(&mut fields, &mut said)?;
            into.extend(said.into_iter().map(Item::Said));
        }
        "function_call" => {
            fields.pass_over(&["name", "arguments", "namespace", "caller"]);
            let calls = vec![fields.needed_text("call_id")?];
            into.push(Item::Said(Said::Assistant { text: String::new(), calls }));
        }
        "function_call_output" => {
            fields.pass_over(&["caller"]);
            let Some(output) = fields.take("output") else {
                return Err(Refusal::field(&fields.path("output"), "it is missing"));
            };
            into.push(Item::Said(Said::Result {
                call: fields.needed_text("call_id")?,
                content: text_of(output, &fields.path("output"))?,
                at: fields.path("call_id"),
            }));
        }
        "reasoning" => return Ok(()),
        _ => {
            return Err(unsupported(
                &fields.path("type"),
                "only messages, function calls, their outputs and references to these are supported",
            ));
        }
    }
    fields.end()
}

fn message(fields: &mut Fields, into: &mut Vec<Said>) -> Result<()> {
    let role = fields.needed_text("role")?;
    let Some(content) = fields.take("content") else {
        return Err(Refusal::field(&fields.path("content"), "it is missing"));
    };
    let at = fields.path("content");
    match role.as_str() {
        "system" | "developer" => into.push(Said::Instructions(text_of(content, &at)?)),
        "user" => user(content, &at, into)?,
        "assistant" => into.push(Said::Assistant { text: text_of(content, &at)?, calls: Vec::new() }),
        _ => return Err(Refusal::field(&fields.path("role"), "it must be system, developer, user or assistant")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_read_and_what_cannot_be_is_named() {
        assert_eq!(read(Some(json!("hi"))).unwrap(), [Item::Said(Said::User("hi".into()))]);
        let said = read(Some(json!([
            {"role": "user", "content": "x"},
            {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
             "content": [{"type": "output_text", "text": "y", "annotations": []}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "id": "fc_1", "status": "completed"},
            {"type": "function_call_output", "call_id": "c", "output": "z"},
            {"type": "item_reference", "id": "msg_1"},
        ])))
        .unwrap();
        assert_eq!(said.len(), 5);
        assert_eq!(said[2], Item::Said(Said::Assistant { text: String::new(), calls: vec!["c".into()] }));
        assert_eq!(said[4], Item::Reference { id: "msg_1".into(), at: "input[5].id".into() });
        for (input, field) in [
            (json!(7), "input"),
            (json!([]), "input"),
            (json!([{"type": "web_search_call"}]), "input[0].type"),
            (json!([{"type": "item_reference"}]), "input[0].id"),
            (json!([{"role": "user"}]), "input[0].content"),
            (json!([{"role": "tool", "content": "x"}]), "input[0].role"),
            (json!([{"type": "function_call_output", "call_id": "c"}]), "input[0].output"),
            (json!([{"role": "user", "content": [{"type": "input_image"}]}]), "input[0].content[0].image_url"),
            (json!([{"role": "user", "content": [{"type": "input_file"}]}]), "input[0].content[0].type"),
        ] {
            let error = read(Some(input.clone())).unwrap_err().into_envelope();
            assert_eq!(error.validation_errors[0].field, field, "{input}");
        }
    }
}
