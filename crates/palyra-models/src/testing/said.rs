//! What a model says in one turn of the scripted server, and how a wire spells it.
//!
//! A [`Wire`] is one vendor's format, from the server's side. Those of the vendors that Palyra knows lie beside this file;
//! tests of other providers bring their own.

use std::fmt;

use serde_json::Value;

use crate::event::{StopReason, Usage};

/// One turn, as every wire can spell it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Text in pieces.
    pub deltas: Vec<String>,
    /// Calls, in order.
    pub calls: Vec<SaidCall>,
    /// Why the model stopped; none to leave it out.
    pub stop: Option<StopReason>,
    /// What was used.
    pub usage: Usage,
}

/// A call in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaidCall {
    /// Its id.
    pub id: String,
    /// The tool's name as servers see it.
    pub name: String,
    /// Its arguments.
    pub arguments: String,
}

impl SaidCall {
    /// The arguments in two parts, as real servers send them.
    #[must_use]
    pub fn halves(&self) -> [&str; 2] {
        let middle = self.arguments.chars().count() / 2;
        let at = self.arguments.char_indices().nth(middle).map_or(0, |(at, _)| at);
        let (left, right) = self.arguments.split_at(at);
        [left, right]
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireEvent {
    /// Its name, where the wire has names.
    pub name: Option<String>,
    /// What it carries.
    pub data: String,
}

impl WireEvent {
    /// An event without a name.
    #[must_use]
    pub fn data(data: impl Into<String>) -> Self {
        Self { name: None, data: data.into() }
    }
}

/// How a wire cuts its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamForm {
    /// Server-sent events.
    Events,
    /// One document per line.
    Lines,
}

/// One vendor's format, from the server's side.
pub trait Wire: fmt::Debug + Send + Sync {
    /// Whether this path, without its query, belongs to the wire.
    fn answers(&self, path: &str) -> bool;

    /// The turn as the events of a stream.
    fn events(&self, said: &Said) -> Vec<WireEvent>;

    /// The turn as one document.
    fn document(&self, said: &Said) -> Value;

    /// What follows the last event; none if nothing does.
    fn end_mark(&self) -> Option<&'static str> {
        None
    }

    /// How the stream is cut.
    fn form(&self) -> StreamForm {
        StreamForm::Events
    }

    /// Whether the request asks for a stream.
    fn wants_stream(&self, _path: &str, body: &Value) -> bool {
        body.get("stream").and_then(Value::as_bool).unwrap_or_default()
    }
}
