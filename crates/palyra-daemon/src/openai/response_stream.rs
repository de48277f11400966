//! How responses are written in parts: each part of the document is announced, filled and closed, in OpenAI's order.

use palyra_models::Usage;
use serde_json::{Value, json};

use super::error::OpenAiError;
use super::following::{ClientCall, Ending};
use super::response_document::{Response, Standing, call, call_item_id, text_part};
use super::sse::{Events, Writing};

/// A response in parts.
#[derive(Debug)]
pub(super) struct Parts {
    response: Response,
    text: String,
    output: Vec<Value>,
    next_number: u64,
}

impl Parts {
    pub(super) fn new(response: Response) -> Self {
        Self { response, text: String::new(), output: Vec::new(), next_number: 0 }
    }

    fn event(&mut self, name: &str, mut document: Value, events: &mut Events) {
        if let Some(fields) = document.as_object_mut() {
            fields.insert("type".to_owned(), name.into());
            fields.insert("sequence_number".to_owned(), self.next_number.into());
        }
        self.next_number += 1;
        events.named(name, &document);
    }

    fn whole(&mut self, name: &str, standing: &Standing<'_>, usage: Option<Usage>, events: &mut Events) {
        let document = self.response.document(standing, &self.output, usage);
        self.event(name, json!({ "response": document }), events);
    }

    /// The message begins with its first text; an answer may be calls alone.
    fn open_message(&mut self, events: &mut Events) {
        let item = self.response.message("", "in_progress");
        self.event("response.output_item.added", json!({ "output_index": 0, "item": item }), events);
        let place = json!({ "item_id": self.response.message_id(), "output_index": 0, "content_index": 0, "part": text_part("") });
        self.event("response.content_part.added", place, events);
    }

    fn close_message(&mut self, events: &mut Events) {
        if self.text.is_empty() {
            return;
        }
        let id = self.response.message_id();
        let text = json!({ "item_id": id, "output_index": 0, "content_index": 0, "text": self.text, "logprobs": [] });
        self.event("response.output_text.done", text, events);
        let part = json!({ "item_id": id, "output_index": 0, "content_index": 0, "part": text_part(&self.text) });
        self.event("response.content_part.done", part, events);
        let item = self.response.message(&self.text, "completed");
        self.event("response.output_item.done", json!({ "output_index": 0, "item": item }), events);
        self.output.push(item);
    }

    fn call(&mut self, handed_back: &ClientCall, events: &mut Events) {
        let index = self.output.len();
        let id = call_item_id(handed_back);
        let begun = json!({ "output_index": index, "item": call(handed_back, "in_progress") });
        self.event("response.output_item.added", begun, events);
        let delta = json!({ "item_id": id, "output_index": index, "delta": handed_back.arguments });
        self.event("response.function_call_arguments.delta", delta, events);
        let arguments = json!({
            "item_id": id, "output_index": index, "name": handed_back.name, "arguments": handed_back.arguments
        });
        self.event("response.function_call_arguments.done", arguments, events);
        let item = call(handed_back, "completed");
        self.event("response.output_item.done", json!({ "output_index": index, "item": item }), events);
        self.output.push(item);
    }
}

impl Writing for Parts {
    fn begin(&mut self, events: &mut Events) {
        self.whole("response.created", &Standing::InProgress, None, events);
        self.whole("response.in_progress", &Standing::InProgress, None, events);
    }

    fn text(&mut self, text: &str, events: &mut Events) {
        if self.text.is_empty() {
            self.open_message(events);
        }
        self.text.push_str(text);
        let id = self.response.message_id();
        let delta = json!({ "item_id": id, "output_index": 0, "content_index": 0, "delta": text, "logprobs": [] });
        self.event("response.output_text.delta", delta, events);
    }

    fn done(&mut self, ending: Ending, usage: Usage, events: &mut Events) {
        self.close_message(events);
        if let Ending::Calls(calls) = &ending {
            for handed_back in calls {
                self.call(handed_back, events);
            }
        }
        let name = match ending {
            Ending::Stop | Ending::Calls(_) => "response.completed",
            Ending::Length | Ending::Filtered => "response.incomplete",
        };
        self.whole(name, &Standing::Ended(&ending), Some(usage), events);
    }

    fn failed(&mut self, error: &OpenAiError, usage: Usage, events: &mut Events) {
        self.close_message(events);
        self.whole("response.failed", &Standing::Failed(error.message()), Some(usage), events);
    }
}
