//! The vocabulary of canvases: what is on the journal about them, and what the tape says when a run draws.
//!
//! Payloads here are kept for good, so fields are only ever added, with a default that says what older records meant. The tables are in
//! `projections/canvases.rs`, the rules in `engine/canvases`; what a document may be is the business of `palyra-a2ui`.

use palyra_common::{CanvasId, Label, RunId, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Kinds of records about canvases.
pub(crate) mod kind {
    pub(crate) const OPENED: &str = "canvas.opened";
    pub(crate) const CHANGED: &str = "canvas.changed";
    pub(crate) const CLOSED: &str = "canvas.closed";
    pub(crate) const ACTION: &str = "canvas.action";
}

/// Payload of a `canvas.opened` record: a run drew something new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CanvasOpened {
    pub(crate) canvas_id: CanvasId,
    pub(crate) session_id: SessionId,
    pub(crate) run_id: RunId,
    /// The effect it is; the same effect again is this canvas.
    pub(crate) effect_id: String,
    pub(crate) title: String,
    pub(crate) document: Value,
    /// Label of all that the run had seen when it drew.
    pub(crate) label: Label,
}

/// Payload of a `canvas.changed` record: a run drew something else on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CanvasChanged {
    pub(crate) canvas_id: CanvasId,
    pub(crate) session_id: SessionId,
    pub(crate) run_id: RunId,
    pub(crate) effect_id: String,
    /// The version after the change.
    pub(crate) version: u64,
    pub(crate) patch: Value,
    /// Label of what is on the canvas now.
    pub(crate) label: Label,
}

/// Payload of a `canvas.closed` record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CanvasClosed {
    pub(crate) canvas_id: CanvasId,
    pub(crate) session_id: SessionId,
    pub(crate) by: String,
}

/// Payload of a `canvas.action` record: a person acted. It is in the same commit as the input that it became.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CanvasActed {
    pub(crate) canvas_id: CanvasId,
    pub(crate) session_id: SessionId,
    /// The version that the person saw.
    pub(crate) version: u64,
    pub(crate) component_id: String,
    pub(crate) values: Map<String, Value>,
    /// Values that stood there as the document proposed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unchanged: Vec<String>,
    pub(crate) by: String,
    /// Where they acted.
    pub(crate) via: String,
    /// The input of the session that it became.
    pub(crate) input_id: String,
}

/// What a call drew, as its outcome tells the run machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanvasDrawn {
    /// The canvas.
    pub canvas_id: CanvasId,
    /// Its version now.
    pub version: u64,
}

/// What the tape says when a run draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CanvasUpdate {
    /// The canvas.
    pub canvas_id: CanvasId,
    /// Its version now.
    pub version: u64,
    /// Its title, if it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The document, if it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
    /// The patch that led from the version before to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
}

impl CanvasUpdate {
    /// What a call with these arguments drew.
    pub(crate) fn of_call(drawn: CanvasDrawn, arguments: &Value) -> Self {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            canvas_id: drawn.canvas_id,
            version: drawn.version,
            title: text("title"),
            document: arguments.get("document").cloned(),
            patch: arguments.get("patch").cloned(),
        }
    }
}
