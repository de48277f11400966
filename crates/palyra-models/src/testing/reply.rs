//! What the scripted server answers.

use std::time::Duration;

use serde_json::{Value, json};

use super::fault::{Delivery, Dress, Fault, LineEnding};
use super::said::{Said, SaidCall, StreamForm, Wire, WireEvent};
use crate::error::ModelErrorClass;
use crate::message::Message;
use crate::scripted::{Call, ModelErrorSpec, Turn};
use crate::wire::wire_name;

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
    dress: Dress,
    end_mark: EndMark,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Said(Said, Form),
    Bytes { content_type: String, bytes: Vec<u8> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Stream,
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
        let call = |(index, call): (usize, &Call)| SaidCall {
            id: call.id_or_default(position + 1, index + 1),
            name: wire_name(&call.tool),
            arguments: call.arguments_text(),
        };
        let said = Said {
            deltas: turn.deltas(messages),
            calls: turn.calls.iter().enumerate().map(call).collect(),
            stop: Some(turn.stop_reason()),
            usage: turn.usage.unwrap_or_default(),
        };
        let delay = Duration::from_millis(turn.delay_ms);
        Self { delay, ..Self::said(said) }
    }

    /// This very turn.
    #[must_use]
    pub fn said(said: Said) -> Self {
        Self::with(200, Content::Said(said, Form::Stream))
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
            dress: Dress::default(),
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

    /// Writes events down differently.
    #[must_use]
    pub fn dressed(mut self, dress: Dress) -> Self {
        self.dress = dress;
        self
    }

    /// Leaves out the mark of the end, where the wire has one.
    #[must_use]
    pub fn without_done(mut self) -> Self {
        self.end_mark = EndMark::Missing;
        self
    }

    /// Leaves out why the model stopped.
    #[must_use]
    pub fn without_finish_reason(mut self) -> Self {
        if let Content::Said(said, _) = &mut self.content {
            said.stop = None;
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
        if let Content::Said(_, form) = &mut self.content {
            *form = Form::Document;
        }
        self
    }

    /// The content type to send in this wire.
    pub(super) fn shown_content_type(&self, wire: &dyn Wire) -> &str {
        let usual = match (&self.content, wire.form()) {
            (Content::Said(_, Form::Stream), StreamForm::Events) => "text/event-stream",
            (Content::Said(_, Form::Stream), StreamForm::Lines) => "application/x-ndjson",
            (Content::Said(_, Form::Document), _) => "application/json",
            (Content::Bytes { content_type, .. }, _) => content_type,
        };
        self.content_type.as_deref().unwrap_or(usual)
    }

    /// The body in this wire, cut as it is to be sent.
    pub(super) fn pieces(&self, wire: &dyn Wire) -> Vec<Vec<u8>> {
        let pieces: Vec<Vec<u8>> = match &self.content {
            Content::Bytes { bytes, .. } => vec![bytes.clone()],
            Content::Said(said, Form::Document) => vec![wire.document(said).to_string().into_bytes()],
            Content::Said(said, Form::Stream) => self.stream(wire, said),
        };
        match self.delivery {
            Delivery::PerEvent => pieces,
            Delivery::Whole => vec![pieces.concat()],
            Delivery::ByteByByte => pieces.concat().into_iter().map(|byte| vec![byte]).collect(),
        }
    }

    fn stream(&self, wire: &dyn Wire, said: &Said) -> Vec<Vec<u8>> {
        let end = self.line_ending.as_str();
        let mut events = wire.events(said);
        if self.end_mark == EndMark::Sent {
            events.extend(wire.end_mark().map(WireEvent::data));
        }
        let names: Vec<Option<String>> = events.iter().map(|event| event.name.clone()).collect();
        let data: Vec<Vec<u8>> = events.into_iter().map(|event| event.data.into_bytes()).collect();
        let spoiled = self.fault.map_or(data.clone(), |fault| fault.spoil(data));
        // Names only fit where the fault left the events in their places.
        let named = spoiled.len() == names.len();
        let frame = |(at, data): (usize, Vec<u8>)| match wire.form() {
            StreamForm::Lines => {
                [self.dress.before(at, wire.form(), end).as_slice(), data.as_slice(), end.as_bytes()].concat()
            }
            StreamForm::Events => {
                let name = names.get(at).cloned().flatten().filter(|_| named);
                let name = name.map(|name| format!("event: {name}{end}")).unwrap_or_default();
                let before = self.dress.before(at, wire.form(), end);
                let fields = self.dress.fields(&data, end);
                [before.as_slice(), name.as_bytes(), fields.as_slice(), end.as_bytes(), end.as_bytes()].concat()
            }
        };
        spoiled.into_iter().enumerate().map(frame).collect()
    }
}
