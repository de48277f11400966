//! `palyra.vars.inspect`: looking into a variable without, or with, reading its text.
//!
//! Here is only what the tool says about itself. The engine carries it out (`engine/inspect_call.rs`), because it needs the run's
//! variables and a quarantined model.

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity};
use palyra_tools::{
    CallResource, EffectScope, Invocation, Offering, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The tool's name.
pub(crate) const INSPECT: &str = "palyra.vars.inspect";

/// Looks into a variable that holds untrusted data. `fields` extracts typed values: numbers, flags and enumerated values are shown, text
/// stays in a new variable. `label` picks one of the given labels. `text` shows the text itself; from then on, effects that were not
/// declared before need a person's approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InspectInput {
    /// Such as `$v1` or `$v1.items.0.body`.
    pub(crate) variable: String,
    /// What is wanted.
    pub(crate) want: Want,
    /// For `fields`: a JSON Schema whose properties are the fields.
    #[serde(default)]
    pub(crate) schema: Option<Value>,
    /// For `label`: the labels to choose from.
    #[serde(default)]
    pub(crate) labels: Vec<String>,
    /// What to look for.
    #[serde(default)]
    pub(crate) question: Option<String>,
}

/// What is wanted from a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Want {
    /// Typed fields.
    Fields,
    /// One label.
    Label,
    /// The text itself.
    Text,
}

/// The declaration.
pub(super) struct VarsInspect(ToolDeclaration);

impl VarsInspect {
    pub(super) fn new() -> Result<Self, ToolError> {
        let name = ToolName::new(INSPECT)?;
        Ok(Self(
            ToolDeclaration::of::<InspectInput>(name, "Inspect a variable", "look into {variable} for {want}")
                .reads(EffectScope::Pure)
                .output(Integrity::Untrusted, Confidentiality::Private)
                .offered(Offering::OnDemand),
        ))
    }
}

#[async_trait]
impl Tool for VarsInspect {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        let variable = arguments.get("variable").and_then(Value::as_str).unwrap_or_default();
        Ok(CallResource::tool(format!("variable:{variable}")))
    }

    async fn call(&self, _: Invocation) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Internal(format!("`{INSPECT}` is carried out by the engine")))
    }
}
