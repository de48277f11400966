//! Canvases: pages that agents draw, links to them, and what people do on them.

use palyra_common::{ApprovalId, CanvasId, Label, RunId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ApprovalView, SessionInputResponse};

/// Which canvases to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCanvasesParams {
    /// Only those of one session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Also those that were closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_closed: Option<bool>,
    /// How many at most; the daemon has its own upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
}

/// Canvases, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListCanvasesResponse {
    /// The canvases.
    pub canvases: Vec<CanvasView>,
}

/// A canvas without its document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanvasView {
    /// Its id.
    pub canvas_id: CanvasId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// The run that opened it.
    pub run_id: RunId,
    /// Its title.
    pub title: String,
    /// The version of its document.
    pub version: u64,
    /// How far what is on it may be trusted and shown.
    pub label: Label,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last drawn on.
    pub updated_at: Timestamp,
    /// When it was closed, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
}

/// A canvas with its document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanvasDetail {
    /// The canvas.
    pub canvas: CanvasView,
    /// The A2UI document: `surface`, `version` and `root`.
    pub document: Value,
}

/// What a link is good for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CanvasAccess {
    /// Looking at the canvas.
    #[default]
    Read,
    /// Submitting its forms and answering its questions too.
    Act,
}

/// Makes a link to a canvas. Whoever has the link needs nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkCanvasParams {
    /// What it is good for; looking, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<CanvasAccess>,
    /// How long it is good; an hour if nothing is said, at most a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub expires_in_seconds: Option<u64>,
}

/// A link. It is told once and kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CanvasLinkResponse {
    /// The whole address, at the daemon itself.
    pub url: String,
    /// Its path, for those who reach the daemon under another name.
    pub path: String,
    /// What it is good for.
    pub access: CanvasAccess,
    /// Until when.
    pub expires_at: Timestamp,
}

/// What a person did on a canvas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitCanvasParams {
    /// The form or the approval card.
    #[schemars(length(min = 1, max = 64))]
    pub component_id: String,
    /// `submit` for a form, which is also meant if nothing is said; `allow` or `deny` for a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The question that is answered, where a card shows several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<ApprovalId>,
    /// What was entered, by field.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// Refused if the canvas is no longer at this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
    /// A name of this submission; the same again is the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub once: Option<String>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubmitCanvasResponse {
    /// What became of a form: it is an input of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<SessionInputResponse>,
    /// The question that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalView>,
}

/// Where to begin with a canvas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchCanvasParams {
    /// The version already seen; without it the whole document comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_version: Option<u64>,
}

/// One step of a canvas: either the document or a patch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanvasChangeView {
    /// The canvas.
    pub canvas_id: CanvasId,
    /// The version after it.
    pub version: u64,
    /// The whole document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
    /// A JSON Patch (RFC 6902) against the version before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
}
