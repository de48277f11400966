//! What the scripted server answers, and how it misbehaves.

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::ModelErrorClass;
use crate::event::{StopReason, Usage};
use crate::message::Message;
use crate::scripted::{Call, ModelErrorSpec, Turn};
use crate::wire::wire_name;

/// How the body is cut into writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// One chunk per event.
    #[default]
    PerEvent,
    /// One chunk for everything.
    Whole,
    /// One chunk per byte.
    ByteByByte,
}

/// What ends a line of the event stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineEnding {
    /// Line feed.
    #[default]
    Lf,
    /// Carriage return and line feed.
    CrLf,
}

impl LineEnding {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }
}

/// A way to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Closes the connection without a word.
    CloseBeforeAnswer,
    /// Closes the connection in the middle of a chunk, after this many bytes of the body.
    CloseAfter(usize),
    /// Goes silent after this many bytes of the body and keeps the connection open until the client leaves.
    SilentAfter(usize),
}

/// One answer of the scripted server.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) delivery: Delivery,
    pub(super) fault: Option<Fault>,
    pub(super) delay: Duration,
    content_type: Option<String>,
    content: Content,
    line_ending: LineEnding,
    end_mark: EndMark,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Completion(Completion),
    Bytes { content_type: String, bytes: Vec<u8> },
}

#[derive(Debug, Clone, PartialEq)]
struct Completion {
    deltas: Vec<String>,
    /// Id, name on the wire, arguments.
    calls: Vec<(String, String, String)>,
    stop: Option<StopReason>,
    usage: Usage,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Events,
    Document,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndMark {
    Sent,
    Missing,
}

impl Reply {
    /// Says these deltas.
    #[must_use]
    pub fn text(deltas: &[&str]) -> Self {
        Self::turn(&Turn { text: deltas.iter().map(|&delta| delta.to_owned()).collect(), ..Turn::default() }, 0, &[])
    }

    /// Asks for these calls.
    #[must_use]
    pub fn calls(calls: Vec<Call>) -> Self {
        Self::turn(&Turn::calls(calls), 0, &[])
    }

    /// A scripted turn at this position (from zero) in answer to these messages.
    #[must_use]
    pub fn turn(turn: &Turn, position: usize, messages: &[Message]) -> Self {
        if let Some(error) = &turn.error {
            return Self::error(error);
        }
        let call = |(index, call): (usize, &Call)| {
            (call.id_or_default(position + 1, index + 1), wire_name(&call.tool), call.arguments_text())
        };
        let completion = Completion {
            deltas: turn.deltas(messages),
            calls: turn.calls.iter().enumerate().map(call).collect(),
            stop: Some(turn.stop_reason()),
            usage: turn.usage.unwrap_or_default(),
            form: Form::Events,
        };
        let delay = Duration::from_millis(turn.delay_ms);
        Self { delay, ..Self::with(200, Content::Completion(completion)) }
    }

    /// A status with a JSON body.
    #[must_use]
    pub fn status(status: u16, body: &Value) -> Self {
        let bytes = body.to_string().into_bytes();
        Self::with(status, Content::Bytes { content_type: "application/json".to_owned(), bytes })
    }

    /// These very bytes as an event stream.
    #[must_use]
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::with(200, Content::Bytes { content_type: "text/event-stream".to_owned(), bytes: bytes.into() })
    }

    /// The error that makes a client see this class.
    fn error(error: &ModelErrorSpec) -> Self {
        let body = |code: &str| json!({ "error": { "message": error.message, "code": code } });
        let reply = match error.class {
            ModelErrorClass::Auth => Self::status(401, &body("invalid_api_key")),
            ModelErrorClass::Permission => Self::status(403, &body("permission_denied")),
            ModelErrorClass::RateLimit => Self::status(429, &body("rate_limit_exceeded")),
            ModelErrorClass::Quota => Self::status(429, &body("insufficient_quota")),
            ModelErrorClass::Transient => Self::status(503, &body("server_error")),
            ModelErrorClass::Permanent => Self::status(400, &body("invalid_request")),
            ModelErrorClass::ContextTooLong => Self::status(400, &body("context_length_exceeded")),
            ModelErrorClass::ContentPolicy => Self::status(400, &body("content_filter")),
            ModelErrorClass::Malformed => Self::raw("data: {\"choices\": [{\"del\n\n"),
            ModelErrorClass::Network => Self::text(&["x"]).fault(Fault::CloseBeforeAnswer),
            ModelErrorClass::Timeout => Self::text(&["x"]).fault(Fault::SilentAfter(0)),
        };
        match error.retry_after_ms {
            Some(wait) => reply.header("retry-after", &Duration::from_millis(wait).as_secs_f64().to_string()),
            None => reply,
        }
    }

    fn with(status: u16, content: Content) -> Self {
        Self {
            status,
            headers: Vec::new(),
            delivery: Delivery::default(),
            fault: None,
            delay: Duration::ZERO,
            content_type: None,
            content,
            line_ending: LineEnding::default(),
            end_mark: EndMark::Sent,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Answers with another status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Claims another content type.
    #[must_use]
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.content_type = Some(content_type.to_owned());
        self
    }

    /// Cuts the body differently.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Ends lines differently.
    #[must_use]
    pub fn line_ending(mut self, line_ending: LineEnding) -> Self {
        self.line_ending = line_ending;
        self
    }

    /// Leaves out the `[DONE]` mark.
    #[must_use]
    pub fn without_done(mut self) -> Self {
        self.end_mark = EndMark::Missing;
        self
    }

    /// Leaves out why the model stopped.
    #[must_use]
    pub fn without_finish_reason(mut self) -> Self {
        if let Content::Completion(completion) = &mut self.content {
            completion.stop = None;
        }
        self
    }

    /// Misbehaves.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Pauses before the answer and between its chunks.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Answers with one JSON document instead of a stream.
    #[must_use]
    pub fn as_document(mut self) -> Self {
        if let Content::Completion(completion) = &mut self.content {
            completion.form = Form::Document;
        }
        self
    }

    /// The content type to send.
    pub(super) fn shown_content_type(&self) -> &str {
        let usual = match &self.content {
            Content::Completion(Completion { form: Form::Events, .. }) => "text/event-stream",
            Content::Completion(Completion { form: Form::Document, .. }) => "application/json",
            Content::Bytes { content_type, .. } => content_type,
        };
        self.content_type.as_deref().unwrap_or(usual)
    }

    /// The body, cut as it is to be sent.
    pub(super) fn pieces(&self) -> Vec<Vec<u8>> {
        let pieces: Vec<Vec<u8>> = match &self.content {
            Content::Bytes { bytes, .. } => vec![bytes.clone()],
            Content::Completion(completion) if completion.form == Form::Document => {
                vec![completion.document().to_string().into_bytes()]
            }
            Content::Completion(completion) => {
                let end = self.line_ending.as_str();
                let mut data: Vec<String> = completion.chunks().iter().map(Value::to_string).collect();
                if self.end_mark == EndMark::Sent {
                    data.push("[DONE]".to_owned());
                }
                data.iter().map(|data| format!("data: {data}{end}{end}").into_bytes()).collect()
            }
        };
        match self.delivery {
            Delivery::PerEvent => pieces,
            Delivery::Whole => vec![pieces.concat()],
            Delivery::ByteByByte => pieces.concat().into_iter().map(|byte| vec![byte]).collect(),
        }
    }
}

impl Completion {
    fn chunks(&self) -> Vec<Value> {
        let chunk = |delta: Value, stop: Option<&str>| {
            json!({
                "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "model": "scripted-model",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": stop }],
            })
        };
        let mut chunks = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
        chunks.extend(self.deltas.iter().map(|text| chunk(json!({ "content": text }), None)));
        for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
            let call = |call: Value| chunk(json!({ "tool_calls": [call] }), None);
            let function = json!({ "name": name, "arguments": "" });
            chunks.push(call(json!({ "index": index, "id": id, "type": "function", "function": function })));
            // Arguments come in two parts, as they do from real servers.
            let middle = arguments.char_indices().nth(arguments.chars().count() / 2).map_or(0, |(at, _)| at);
            let (left, right) = arguments.split_at(middle);
            for part in [left, right] {
                chunks.push(call(json!({ "index": index, "function": { "arguments": part } })));
            }
        }
        if let Some(stop) = self.stop {
            chunks.push(chunk(json!({}), Some(finish_reason(stop))));
        }
        chunks.push(json!({ "object": "chat.completion.chunk", "choices": [], "usage": self.usage() }));
        chunks
    }

    fn document(&self) -> Value {
        let calls: Vec<Value> = self
            .calls
            .iter()
            .map(|(id, name, arguments)| {
                json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
            })
            .collect();
        let mut message = json!({ "role": "assistant", "content": self.deltas.concat() });
        if let Some(fields) = message.as_object_mut().filter(|_| !calls.is_empty()) {
            fields.insert("tool_calls".to_owned(), calls.into());
        }
        json!({
            "id": "chatcmpl-scripted", "object": "chat.completion", "model": "scripted-model", "usage": self.usage(),
            "choices": [{ "index": 0, "message": message, "finish_reason": self.stop.map(finish_reason) }],
        })
    }

    fn usage(&self) -> Value {
        let Usage { input_tokens, output_tokens, .. } = self.usage;
        json!({
            "prompt_tokens": input_tokens, "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        })
    }
}

const fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::Other => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::ContentFilter => "content_filter",
    }
}
