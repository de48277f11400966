//! Messages of a chat-completions request.
//!
//! Results of tools are text on this wire. Images and files of a result follow in a message of their own, after all results of the
//! turn: servers want every call answered before anything else is said.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::dialect::Lacks;
use super::habits::Habits;
use super::reasoning::{self, Place};
use crate::message::{Message, Role};
use crate::part::{Part, PartKind};
use crate::request::ModelRequest;
use crate::wire::ToolNames;

/// What the messages are written with.
pub(super) struct Writer<'a> {
    pub names: &'a ToolNames,
    pub habits: &'a Habits,
    pub lacks: &'a BTreeSet<Lacks>,
    pub origin: &'a str,
    pub model: &'a str,
}

impl Writer<'_> {
    /// All messages of a request.
    pub(super) fn messages(&self, request: &ModelRequest) -> Vec<Value> {
        let last_user = request.last_user();
        let mut written = Vec::with_capacity(request.messages.len());
        let mut pending: Vec<Value> = Vec::new();
        for (at, message) in request.messages.iter().enumerate() {
            if message.role != Role::Tool && !pending.is_empty() {
                written.push(json!({ "role": "user", "content": std::mem::take(&mut pending) }));
            }
            let place = if last_user.is_none_or(|user| at > user) { Place::Present } else { Place::Earlier };
            written.push(self.message(message, place));
            if message.role == Role::Tool && !message.parts.is_empty() {
                let of = message.name.as_deref().unwrap_or("the tool");
                pending.push(json!({ "type": "text", "text": format!("[belongs to the result of {of}]") }));
                pending.extend(message.parts.iter().map(part));
            }
        }
        if !pending.is_empty() {
            written.push(json!({ "role": "user", "content": pending }));
        }
        written
    }

    fn message(&self, message: &Message, place: Place) -> Value {
        match message.role {
            Role::System => json!({ "role": "system", "content": message.content }),
            Role::User if message.parts.is_empty() => json!({ "role": "user", "content": message.content }),
            Role::User => {
                let mut content = Vec::new();
                if !message.content.is_empty() {
                    content.push(json!({ "type": "text", "text": message.content }));
                }
                content.extend(message.parts.iter().map(part));
                json!({ "role": "user", "content": content })
            }
            Role::Tool => json!({
                "role": "tool",
                "tool_call_id": message.tool_call_id.as_deref().unwrap_or_default(),
                "content": message.content,
            }),
            Role::Assistant => self.assistant(message, place),
        }
    }

    fn assistant(&self, message: &Message, place: Place) -> Value {
        let mut fields = Map::new();
        fields.insert("role".to_owned(), "assistant".into());
        if message.tool_calls.is_empty() {
            fields.insert("content".to_owned(), message.content.as_str().into());
        } else {
            let content = if message.content.is_empty() { Value::Null } else { message.content.as_str().into() };
            fields.insert("content".to_owned(), content);
            let calls = message.tool_calls.iter().map(|call| {
                json!({
                    "id": call.id,
                    "type": "function",
                    "function": { "name": self.names.to_wire(&call.name), "arguments": arguments(&call.arguments) },
                })
            });
            fields.insert("tool_calls".to_owned(), calls.collect());
        }
        if !self.lacks.contains(&Lacks::GivenBack) {
            let to = (self.origin, self.model);
            reasoning::give_back(&mut fields, message, place, self.habits.give_back, to);
        }
        Value::Object(fields)
    }
}

/// An image or a file.
fn part(part: &Part) -> Value {
    let url = data_url(part);
    match part.kind {
        PartKind::Image => json!({ "type": "image_url", "image_url": { "url": url } }),
        PartKind::File => {
            let name = part.name.as_deref().unwrap_or("file");
            json!({ "type": "file", "file": { "filename": name, "file_data": url } })
        }
    }
}

/// The bytes of a part as a URL.
pub(crate) fn data_url(part: &Part) -> String {
    format!("data:{};base64,{}", part.media_type, part.data)
}

/// Arguments of an earlier call. Servers read them again and answer with an error if they are no JSON object, so what the model got
/// wrong goes back to it inside one.
pub(crate) fn arguments(written: &str) -> String {
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Object(_)) => written.to_owned(),
        Ok(_) | Err(_) => json!({ "malformed_arguments": written }).to_string(),
    }
}
