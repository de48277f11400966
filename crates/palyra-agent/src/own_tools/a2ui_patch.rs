//! `palyra.a2ui.patch`: changes a page that was shown. The engine carries it out, as it does `palyra.a2ui.render`.

use async_trait::async_trait;
use palyra_common::{CanvasId, Confidentiality, Integrity};
use palyra_tools::{
    CallResource, Concurrency, EffectScope, Invocation, Offering, SinkKind, Tool, ToolDeclaration, ToolError, ToolName,
    ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The tool's name.
pub(crate) const PATCH: &str = "palyra.a2ui.patch";

/// Changes a page that palyra.a2ui.render showed in this session, and returns its new version. Refused if the page is no longer at
/// `base_version`, or if the result is not a valid document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchInput {
    /// The canvas id that the render call returned.
    pub(crate) canvas_id: CanvasId,
    /// The version that the patch is based on.
    pub(crate) base_version: u64,
    /// RFC 6902 operations; every path begins with `/root`, such as `/root/items/0/text`.
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub(crate) patch: Vec<Value>,
}

/// The declaration.
pub(super) struct Patch(ToolDeclaration);

impl Patch {
    pub(super) fn new() -> Result<Self, ToolError> {
        let name = ToolName::new(PATCH)?;
        let mut declaration = ToolDeclaration::of::<PatchInput>(name, "Change a page", "change the page {canvas_id}")
            .reads(EffectScope::Pure)
            .sink("patch", SinkKind::Content)
            .output(Integrity::System, Confidentiality::Public)
            .offered(Offering::OnDemand);
        declaration.concurrency = Concurrency::Exclusive;
        Ok(Self(declaration))
    }
}

#[async_trait]
impl Tool for Patch {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        let canvas = arguments.get("canvas_id").and_then(Value::as_str).unwrap_or_default();
        Ok(CallResource::tool(format!("canvas:{canvas}")))
    }

    async fn call(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Internal(format!("`{PATCH}` is carried out by the engine")))
    }
}
