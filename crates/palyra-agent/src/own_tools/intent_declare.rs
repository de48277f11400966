//! `palyra.intent.declare`: the planner states what it means to do, before it has read anything that others wrote.
//!
//! The tool itself only answers; the run machine takes the intents into the run's envelope when the call has finished.

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity};
use palyra_flow::Mandate;
use palyra_tools::{
    CallResource, EffectScope, Invocation, Offering, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The tool's name.
pub(crate) const INTENT: &str = "palyra.intent.declare";

/// Declares the effects outside the workspace that the task asks for, such as sending a message. Call it before any other
/// tool; effects not declared by then, or to other targets, need a person's approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IntentInput {
    /// Tools that will be needed.
    pub(crate) effects: Vec<Mandate>,
}

/// The tool.
pub(super) struct IntentDeclare(ToolDeclaration);

impl IntentDeclare {
    pub(super) fn new() -> Result<Self, ToolError> {
        let name = ToolName::new(INTENT)?;
        Ok(Self(
            ToolDeclaration::of::<IntentInput>(name, "State the intent", "accept what the run will do")
                .reads(EffectScope::Pure)
                .output(Integrity::System, Confidentiality::Public)
                .offered(Offering::Always),
        ))
    }
}

#[async_trait]
impl Tool for IntentDeclare {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, _: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool("intent"))
    }

    fn summarise(&self, arguments: &Value) -> String {
        let effects = arguments.get("effects").and_then(Value::as_array);
        let tools: Vec<&str> =
            effects.into_iter().flatten().filter_map(|effect| effect.get("tool")?.as_str()).collect();
        if tools.is_empty() {
            self.0.summarise(arguments)
        } else {
            format!("accept what the run will do: {}", tools.join(", "))
        }
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let input: IntentInput = serde_json::from_value(invocation.arguments)
            .map_err(|error| ToolError::argument(INTENT, "effects", "invalid_intent", error.to_string()))?;
        let tools: Vec<&str> = input.effects.iter().map(|mandate| mandate.tool.as_str()).collect();
        let noted = if tools.is_empty() { "nothing".to_owned() } else { tools.join(", ") };
        Ok(ToolOutput::text(format!("noted: {noted}"), self.0.output.clone()))
    }
}
