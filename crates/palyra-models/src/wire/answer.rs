//! One answer, read as it arrives.
//!
//! What the body is, is seen from its first character and not believed from its content type: servers get the header wrong in both
//! directions, and some ignore that streaming was asked for. What cannot be the beginning of an answer at all is not a model server.
//!
//! INVARIANT: the answer ends with `Finished` or with an error. A connection that ends before the server said that the model
//! stopped is an error, however much had arrived.

use std::collections::VecDeque;
use std::time::Duration;

use futures::{StreamExt, stream};

use super::body::{ByteBody, Patience};
use super::json::text;
use super::lines::LineParser;
use super::mask::Mask;
use super::masked_events::MaskedEvents;
use super::sse::{BYTE_ORDER_MARK, SseParser};
use crate::attempt::Answering;
use crate::error::{ModelError, ModelErrorClass};
use crate::event::ModelEvent;
use crate::provider::ModelStream;

/// How long a server that said the model stopped may take to send usage and the end mark.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for the end of a body whose contents are complete. A body read to its end leaves the connection to the next call.
const TAIL: Duration = Duration::from_millis(5);
/// What data begins with that was packed by gzip.
const GZIP: u8 = 0x1F;
/// Most bytes of an answer that is one document.
const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// How a vendor cuts its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON document per line.
    Lines,
}

/// Whether more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The stream goes on.
    More,
    /// The vendor's mark of the end has been seen.
    Ended,
}

/// From the JSON of a vendor to events.
pub(crate) trait Decode: Send + 'static {
    /// How the vendor cuts its stream.
    const FRAMING: Framing;

    /// Reads the data of one event, or one line.
    fn read(&mut self, data: &str, events: &mut VecDeque<ModelEvent>) -> Result<Flow, ModelError>;

    /// Reads an answer that came as one document although a stream was asked for.
    fn read_document(&mut self, json: &str, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        self.read(json, events).map(|_| ())
    }

    /// Whether the server has said why the model stopped; only decoration may follow.
    fn has_stopped(&self) -> bool;

    /// The answer has ended in good order: the closing events, `Finished` last. An answer without anything in it is an error.
    fn finish(&mut self, events: &mut VecDeque<ModelEvent>) -> Result<(), ModelError>;
}

/// Reads up to the first event, so that an answer that fails before it is a failed call, and gives the rest as a stream that begins
/// with who answers.
pub(crate) async fn start<D: Decode>(
    body: ByteBody,
    decoder: D,
    answering: Answering,
) -> Result<ModelStream, ModelError> {
    let mut answer = Answer::new(body, decoder);
    let first = match answer.next().await {
        Some(first) => first?,
        None => return Err(crate::chat::empty_answer()),
    };
    let rest = stream::unfold(answer, |mut answer| async move {
        let item = answer.next().await?;
        Some((item, answer))
    });
    Ok(Box::pin(stream::iter([Ok(ModelEvent::Answering(answering)), Ok(first)]).chain(rest)))
}

/// What the body turned out to be.
#[derive(Debug)]
enum Shape {
    /// Only white space so far.
    Unknown,
    Events(SseParser),
    Lines(LineParser),
    Document(Vec<u8>),
}

/// How far the body has been read.
#[derive(Debug)]
enum Reading {
    /// More is to come.
    Open(ByteBody),
    /// The contents are complete; the body may not be.
    Tail(ByteBody),
    /// Nothing is left, or the connection is given up.
    Closed,
}

/// An answer in progress.
struct Answer<D> {
    reading: Reading,
    shape: Shape,
    decoder: D,
    ready: VecDeque<ModelEvent>,
    masked: MaskedEvents,
    /// Events that have passed the mask.
    passed: VecDeque<ModelEvent>,
    /// Why reading failed; told after the events that had arrived before.
    failure: Option<ModelError>,
    mask: Mask,
    server: String,
    content_type: String,
    /// How the server says it packed the body; empty if it did not.
    packing: String,
}

impl<D: Decode> Answer<D> {
    fn new(body: ByteBody, decoder: D) -> Self {
        let mask = body.mask();
        Self {
            masked: MaskedEvents::new(&mask),
            passed: VecDeque::new(),
            mask,
            server: body.server().to_owned(),
            content_type: body.content_type(),
            packing: body.packing(),
            reading: Reading::Open(body),
            shape: Shape::Unknown,
            decoder,
            ready: VecDeque::new(),
            failure: None,
        }
    }

    /// The next event; none after the end.
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.passed.pop_front() {
                return Some(Ok(event));
            }
            if let Some(event) = self.ready.pop_front() {
                self.masked.push(event, &mut self.passed);
                continue;
            }
            if let Some(error) = self.failure.take() {
                return Some(Err(error));
            }
            // Taken out while reading: if reading fails, the connection is closed by not being put back.
            match std::mem::replace(&mut self.reading, Reading::Closed) {
                Reading::Open(mut body) => match self.read_more(&mut body).await {
                    Ok(Flow::More) => self.reading = Reading::Open(body),
                    Ok(Flow::Ended) => self.reading = Reading::Tail(body),
                    Err(error) => self.failure = Some(self.mask.clean(error)),
                },
                Reading::Tail(mut body) => while let Ok(Some(_)) = body.chunk(Patience::AtMost(TAIL)).await {},
                Reading::Closed => return None,
            }
        }
    }

    async fn read_more(&mut self, body: &mut ByteBody) -> Result<Flow, ModelError> {
        let stopped = self.decoder.has_stopped();
        let patience = if stopped { Patience::AtMost(GRACE) } else { Patience::Usual };
        match body.chunk(patience).await {
            Ok(Some(chunk)) => self.feed(&chunk),
            Ok(None) => self.end_of_body(),
            // The model had stopped; what is missing is decoration.
            Err(_) if stopped => self.finish(),
            Err(error) => Err(error),
        }
    }

    fn feed(&mut self, mut chunk: &[u8]) -> Result<Flow, ModelError> {
        if matches!(self.shape, Shape::Unknown) {
            chunk = chunk.strip_prefix(BYTE_ORDER_MARK).unwrap_or(chunk);
            let Some(first) = chunk.iter().find(|byte| !byte.is_ascii_whitespace()) else { return Ok(Flow::More) };
            self.shape = match (*first, D::FRAMING) {
                (b'{', Framing::Lines) => Shape::Lines(LineParser::default()),
                (b'{' | b'[', Framing::Events) => Shape::Document(Vec::new()),
                // What a line of an event stream may begin with: a field, a comment, a byte order mark.
                (b'd' | b'e' | b'i' | b'r' | b':' | 0xEF, Framing::Events) => Shape::Events(SseParser::default()),
                _ => return Err(self.no_model_server(*first)),
            };
        }
        match &mut self.shape {
            Shape::Unknown => Ok(Flow::More),
            Shape::Document(held) => {
                if held.len().saturating_add(chunk.len()) > MAX_DOCUMENT_BYTES {
                    return Err(ModelError::malformed("the server's answer is larger than 16 MiB"));
                }
                held.extend_from_slice(chunk);
                Ok(Flow::More)
            }
            // Events before the damage are still good: they are delivered first.
            Shape::Events(parser) => {
                let pushed = parser.push(chunk);
                self.take_ready(pushed)
            }
            Shape::Lines(parser) => {
                let pushed = parser.push(chunk);
                self.take_ready(pushed)
            }
        }
    }

    fn take_ready(&mut self, pushed: Result<(), ModelError>) -> Result<Flow, ModelError> {
        loop {
            let data = match &mut self.shape {
                Shape::Events(parser) => parser.next_event(),
                Shape::Lines(parser) => parser.next_line(),
                Shape::Unknown | Shape::Document(_) => None,
            };
            let Some(data) = data else { break };
            if data.trim().is_empty() {
                continue;
            }
            if self.decoder.read(&data, &mut self.ready)? == Flow::Ended {
                return self.finish();
            }
        }
        pushed.map(|()| Flow::More)
    }

    fn end_of_body(&mut self) -> Result<Flow, ModelError> {
        let finished = match &mut self.shape {
            Shape::Unknown => {
                return Err(ModelError::new(
                    ModelErrorClass::Network,
                    "the model server closed the connection without an answer",
                ));
            }
            Shape::Document(held) => {
                let held = std::mem::take(held);
                let json = text(held).ok_or_else(|| ModelError::malformed("the server's answer is not valid UTF-8"))?;
                self.decoder.read_document(&json, &mut self.ready)?;
                return self.finish();
            }
            Shape::Events(parser) => parser.finish(),
            Shape::Lines(parser) => parser.finish(),
        };
        if self.take_ready(finished)? == Flow::Ended {
            return Ok(Flow::Ended);
        }
        if self.decoder.has_stopped() {
            return self.finish();
        }
        Err(ModelError::new(
            ModelErrorClass::Network,
            "the model server closed the connection before its answer was complete",
        ))
    }

    fn finish(&mut self) -> Result<Flow, ModelError> {
        self.decoder.finish(&mut self.ready)?;
        Ok(Flow::Ended)
    }

    fn no_model_server(&self, first: u8) -> ModelError {
        let server = &self.server;
        let packing = match (self.packing.as_str(), first) {
            ("", GZIP) => "gzip",
            (packing, _) => packing,
        };
        if !packing.is_empty() {
            let line = format!(
                "`{server}` compressed its answer (`{packing}`) although that was not requested; check the base URL and any proxy in front of the server"
            );
            return ModelError::new(ModelErrorClass::Permanent, line);
        }
        let what = match (first, self.content_type.as_str()) {
            (b'<', _) => "a web page".to_owned(),
            (_, "") => "something other than a model answer".to_owned(),
            (_, content_type) => format!("`{content_type}`"),
        };
        let line = format!("`{server}` is not a model server: it answered with {what}; check the base URL");
        ModelError::new(ModelErrorClass::Permanent, line)
    }
}
