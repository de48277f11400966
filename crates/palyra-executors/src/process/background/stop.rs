//! `palyra.process.stop`: the end of a background process and of everything it started.

use std::sync::Arc;

use async_trait::async_trait;
use palyra_common::{Confidentiality, EffectScope, Integrity};
use palyra_tools::{
    CallResource, Invocation, Offering, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::status::{ProcessInput, report};
use crate::process::Processes;

/// Ends a background process and everything it started, and says what it changed in the workspace. Stopping a process that has ended is not an error.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "its shape is the schema; reading is shared with palyra.process.status")]
struct ProcessStopInput {
    /// The id that palyra.process.start gave.
    id: String,
}

/// The tool.
pub(crate) struct ProcessStop {
    declaration: ToolDeclaration,
    processes: Arc<Processes>,
}

impl ProcessStop {
    pub(crate) fn new(processes: Arc<Processes>) -> Self {
        Self { declaration: Self::declared(), processes }
    }

    /// What the tool says about itself.
    pub(crate) fn declared() -> ToolDeclaration {
        let name = ToolName::builtin("palyra.process.stop");
        // It ends only what this run started, so it is no more than the run's own business.
        ToolDeclaration::of::<ProcessStopInput>(name, "Stop process", "stop process `{id}`")
            .reads(EffectScope::WorkspaceRead)
            .output(Integrity::ToolTrusted, Confidentiality::Private)
            .showing_inline()
            .offered(Offering::OnDemand)
    }
}

#[async_trait]
impl Tool for ProcessStop {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        let id = arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        Ok(CallResource::tool(format!("process:{id}")))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let input = ProcessInput::read(&self.declaration, invocation.arguments.clone())?;
        let running = self.processes.background.find(invocation.run_id, &input.id)?;
        running.kill();
        running.ended().await;
        report(&self.processes, running, &invocation).await
    }
}
