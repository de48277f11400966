//! One HTTP answer, read as it arrives.
//!
//! Whether the body is a stream of events or one JSON document is seen from its first character, not believed from its
//! content type: servers get the header wrong in both directions, and some ignore that streaming was asked for.
//!
//! INVARIANT: the answer ends with `Finished` or with an error. A connection that ends before the server said that the
//! model stopped is an error, however much had arrived.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use tokio::time::timeout;

use super::decode::Decoder;
use super::sse::SseParser;
use super::transport::{Transport, broken};
use crate::error::{ModelError, ModelErrorClass};
use crate::event::ModelEvent;

/// What marks the end of a stream.
const DONE: &str = "[DONE]";
/// How long a server that said the model stopped may take to send usage and the end mark.
const GRACE: Duration = Duration::from_secs(2);
/// Most bytes of an answer that is one document.
const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// What the body turned out to be.
#[derive(Debug)]
enum Body {
    /// Only white space so far.
    Unknown,
    Events(SseParser),
    Document(Vec<u8>),
}

/// An answer in progress.
#[derive(Debug)]
pub(super) struct Answer {
    /// The connection; gone once the answer has ended.
    response: Option<Response>,
    body: Body,
    decoder: Decoder,
    ready: VecDeque<ModelEvent>,
    /// Why reading failed; told after the events that had arrived before.
    failure: Option<ModelError>,
    transport: Arc<Transport>,
}

impl Answer {
    /// Starts to read the body of a successful response.
    pub(super) fn new(response: Response, decoder: Decoder, transport: Arc<Transport>) -> Self {
        Self {
            response: Some(response),
            body: Body::Unknown,
            decoder,
            ready: VecDeque::new(),
            failure: None,
            transport,
        }
    }

    /// The next event; none after the end.
    pub(super) async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if let Some(error) = self.failure.take() {
                return Some(Err(error));
            }
            // Taken out while reading: if reading fails, the connection is closed by not being put back.
            let mut response = self.response.take()?;
            match self.read_more(&mut response).await {
                Ok(Progress::Open) => self.response = Some(response),
                Ok(Progress::Ended) => {}
                Err(error) => self.failure = Some(self.transport.clean(error)),
            }
        }
    }

    async fn read_more(&mut self, response: &mut Response) -> Result<Progress, ModelError> {
        let stopped = self.decoder.has_stopped();
        let wait = if stopped { GRACE } else { self.transport.idle_timeout() };
        match timeout(wait, response.chunk()).await {
            Ok(Ok(Some(chunk))) => self.feed(&chunk),
            Ok(Ok(None)) => self.end_of_body(),
            // The model had stopped; what is missing is decoration.
            Ok(Err(_)) | Err(_) if stopped => self.finish(),
            Ok(Err(error)) => Err(broken(error)),
            Err(_) => {
                let seconds = self.transport.idle_timeout().as_secs_f32();
                Err(ModelError::new(
                    ModelErrorClass::Timeout,
                    format!("the model server sent nothing for {seconds} seconds"),
                ))
            }
        }
    }

    fn feed(&mut self, chunk: &[u8]) -> Result<Progress, ModelError> {
        if matches!(self.body, Body::Unknown) {
            let first = chunk.iter().find(|byte| !byte.is_ascii_whitespace());
            self.body = match first {
                None => return Ok(Progress::Open),
                Some(b'{' | b'[') => Body::Document(Vec::new()),
                Some(b'<') => {
                    return Err(ModelError::malformed("the server answered with a web page, not a completion"));
                }
                Some(_) => Body::Events(SseParser::default()),
            };
        }
        match &mut self.body {
            Body::Unknown => {}
            Body::Document(held) => {
                if held.len().saturating_add(chunk.len()) > MAX_DOCUMENT_BYTES {
                    return Err(ModelError::malformed("the server's answer is larger than 16 MiB"));
                }
                held.extend_from_slice(chunk);
            }
            Body::Events(parser) => {
                // Events before the damage are still good: they are delivered first.
                let pushed = parser.push(chunk);
                if self.take_events()? == Progress::Ended {
                    return Ok(Progress::Ended);
                }
                pushed?;
            }
        }
        Ok(Progress::Open)
    }

    fn take_events(&mut self) -> Result<Progress, ModelError> {
        loop {
            let Body::Events(parser) = &mut self.body else { return Ok(Progress::Open) };
            let Some(data) = parser.next_event() else { return Ok(Progress::Open) };
            match data.trim() {
                "" => {}
                DONE => return self.finish(),
                json => self.decoder.read(json, &mut self.ready)?,
            }
        }
    }

    fn end_of_body(&mut self) -> Result<Progress, ModelError> {
        match &mut self.body {
            Body::Unknown => {}
            Body::Document(held) => {
                let held = std::mem::take(held);
                let json = std::str::from_utf8(&held)
                    .map_err(|_| ModelError::malformed("the server's answer is not valid UTF-8"))?;
                self.decoder.read(json, &mut self.ready)?;
                return self.finish();
            }
            Body::Events(parser) => {
                parser.finish()?;
                if self.take_events()? == Progress::Ended {
                    return Ok(Progress::Ended);
                }
                if self.decoder.has_stopped() {
                    return self.finish();
                }
            }
        }
        Err(ModelError::new(
            ModelErrorClass::Network,
            "the model server closed the connection before its answer was complete",
        ))
    }

    fn finish(&mut self) -> Result<Progress, ModelError> {
        self.decoder.finish(&mut self.ready)?;
        Ok(Progress::Ended)
    }
}

/// Whether more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Open,
    Ended,
}
