//! Answers in parts, as Server-Sent Events.
//!
//! The body is pulled: a client that does not read stops the reading of the tape and nothing else, and one that goes away ends it. The run goes on in
//! either case. While nothing is said, comments keep the connection alive.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use palyra_models::Usage;
use serde_json::Value;

use super::error::OpenAiError;
use super::following::{Ending, Following, Piece};

/// Events that are about to be sent.
#[derive(Debug, Default)]
pub(super) struct Events(String);

impl Events {
    /// An event without a name.
    pub(super) fn data(&mut self, document: &Value) {
        // JSON has no line breaks of its own, so each document is one line.
        self.0.push_str(&format!("data: {document}\n\n"));
    }

    /// An event with a name.
    pub(super) fn named(&mut self, name: &str, document: &Value) {
        self.0.push_str(&format!("event: {name}\ndata: {document}\n\n"));
    }

    /// The end of a stream of chunks.
    pub(super) fn finish(&mut self) {
        self.0.push_str("data: [DONE]\n\n");
    }

    /// Something that clients pass over.
    fn comment(&mut self, text: &str) {
        self.0.push_str(&format!(": {text}\n\n"));
    }
}

/// How the pieces of an answer are written.
pub(super) trait Writing: Send + 'static {
    /// Before everything else.
    fn begin(&mut self, events: &mut Events);
    /// More text.
    fn text(&mut self, text: &str, events: &mut Events);
    /// The end.
    fn done(&mut self, ending: Ending, usage: Usage, events: &mut Events);
    /// An end that nobody wanted.
    fn failed(&mut self, error: &OpenAiError, usage: Usage, events: &mut Events);
}

enum State<W> {
    Beginning(Following, W),
    Going(Following, W),
    Over,
}

/// Answers with the pieces of an answer as they come.
pub(super) fn respond<W: Writing>(following: Following, writing: W) -> Response {
    let stream = futures::stream::unfold(State::Beginning(following, writing), step);
    ([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], Body::from_stream(stream)).into_response()
}

async fn step<W: Writing>(state: State<W>) -> Option<(Result<Bytes, Infallible>, State<W>)> {
    let mut events = Events::default();
    let next = match state {
        State::Over => return None,
        State::Beginning(following, mut writing) => {
            writing.begin(&mut events);
            State::Going(following, writing)
        }
        State::Going(mut following, mut writing) => match following.next().await {
            Ok(Some(Piece::Done(ending))) => {
                writing.done(ending, following.usage(), &mut events);
                State::Over
            }
            Ok(Some(piece)) => {
                match piece {
                    Piece::Text(text) => writing.text(&text, &mut events),
                    Piece::Waiting(why) => events.comment(&why),
                    Piece::Going => events.comment("continuing"),
                    Piece::Silence | Piece::Done(_) => events.comment("working"),
                }
                State::Going(following, writing)
            }
            Ok(None) => return None,
            Err(refusal) => {
                writing.failed(&OpenAiError::of_a_run(refusal), following.usage(), &mut events);
                State::Over
            }
        },
    };
    Some((Ok(events.0.into()), next))
}
