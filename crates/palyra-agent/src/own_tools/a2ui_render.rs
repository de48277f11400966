//! `palyra.a2ui.render`: shows a page to the person whose session it is.
//!
//! Here is only what the tool says about itself. The engine carries it out (`engine/canvases/draw.rs`), because a canvas is on the journal and takes the
//! label of what the run has seen.

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity};
use palyra_tools::{
    CallResource, Concurrency, EffectScope, Invocation, Offering, SinkKind, Tool, ToolDeclaration, ToolError, ToolName,
    ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The tool's name.
pub(crate) const RENDER: &str = "palyra.a2ui.render";

/// Shows a page to the person whose session this is, and returns its canvas id. Use it for what reads badly as text, or to ask for several values
/// at once: what the person submits arrives as their next message. `document` is `{"root": component}`. Components, each with an optional `id`
/// (small letters, digits, `_`, `-`):
/// `{"type":"text","text":"…","style":"body|heading|note|error"}`,
/// `{"type":"markdown","text":"…"}`,
/// `{"type":"list","style":"plain|bullets|numbers","items":[component]}`,
/// `{"type":"table","caption":"…","columns":["…"],"rows":[["…",1,true,null]]}`,
/// `{"type":"chart","kind":"bar|line","title":"…","labels":["…"],"series":[{"name":"…","values":[1]}]}`,
/// `{"type":"progress","label":"…","value":0.5}`,
/// `{"type":"code","text":"…","language":"…"}`, `{"type":"diff","text":"unified diff"}`,
/// `{"type":"image","src":"data:image/png;base64,…","alt":"…"}`,
/// `{"type":"form","id":"…","title":"…","submit":"button","fields":[field]}` and `{"type":"approval","id":"…"}`, which shows the questions of this session.
/// A field is `{"type":"text|email|number|select|checkbox","name":"…","label":"…","help":"…","required":true,"value":…}`; a select has
/// `"options":[{"value":"name","label":"…"}]`, a number may have `min` and `max`, a text `max_length`. Other types and fields are refused.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenderInput {
    /// A title of a few words.
    pub(crate) title: String,
    /// The document.
    pub(crate) document: Map<String, Value>,
}

/// The declaration.
pub(super) struct Render(ToolDeclaration);

impl Render {
    pub(super) fn new() -> Result<Self, ToolError> {
        let name = ToolName::new(RENDER)?;
        let mut declaration = ToolDeclaration::of::<RenderInput>(name, "Show a page", "show a page: {title}")
            .reads(EffectScope::Pure)
            .sink("document", SinkKind::Content)
            .output(Integrity::System, Confidentiality::Public)
            .offered(Offering::OnDemand);
        // Drawings of one run have an order.
        declaration.concurrency = Concurrency::Exclusive;
        Ok(Self(declaration))
    }
}

#[async_trait]
impl Tool for Render {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, _: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool("canvas"))
    }

    async fn call(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Internal(format!("`{RENDER}` is carried out by the engine")))
    }
}
