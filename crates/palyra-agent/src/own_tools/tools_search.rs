//! `palyra.tools.search`: finds tools that the model was not told about, so that requests stay small.
//!
//! Here is only what the tool says about itself. The engine carries it out (`engine/tool_search.rs`), because it needs all tools that there
//! are, and the run machine remembers what was found.

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity};
use palyra_tools::{
    CallResource, EffectScope, Invocation, Offering, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The tool's name.
pub(crate) const SEARCH: &str = "palyra.tools.search";

/// Finds more tools, which you can call from your next step on: background processes, patches, pages and forms for the person, the clock, and those of
/// connected servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchInput {
    /// Words about what the tool does.
    pub(crate) query: String,
}

/// The declaration.
pub(super) struct ToolsSearch(ToolDeclaration);

impl ToolsSearch {
    pub(super) fn new() -> Result<Self, ToolError> {
        let name = ToolName::new(SEARCH)?;
        Ok(Self(
            ToolDeclaration::of::<SearchInput>(name, "Search tools", "search tools for {query}")
                .reads(EffectScope::Pure)
                .output(Integrity::System, Confidentiality::Public)
                .offered(Offering::Always),
        ))
    }
}

#[async_trait]
impl Tool for ToolsSearch {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, _: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool("tools"))
    }

    async fn call(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Internal(format!("`{SEARCH}` is carried out by the engine")))
    }
}
