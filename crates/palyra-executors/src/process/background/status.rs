//! `palyra.process.status`: how a background process is.

use std::sync::Arc;

use async_trait::async_trait;
use palyra_common::{Confidentiality, EffectScope, Integrity};
use palyra_tools::{
    CallResource, Invocation, Offering, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::running::{Running, State, Which};
use crate::process::Processes;
use crate::process::outcome::label;
use crate::tracking::blocking;

/// Says whether a background process still runs, or how it ended, and what it changed in the workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessInput {
    /// The id that palyra.process.start gave.
    pub(super) id: String,
}

impl ProcessInput {
    pub(super) fn read(declaration: &ToolDeclaration, arguments: Value) -> Result<Self, ToolError> {
        serde_json::from_value(arguments)
            .map_err(|error| ToolError::argument(declaration.name.as_str(), "arguments", "invalid", error.to_string()))
    }
}

/// The tool.
pub(crate) struct ProcessStatus {
    declaration: ToolDeclaration,
    processes: Arc<Processes>,
}

impl ProcessStatus {
    pub(crate) fn new(processes: Arc<Processes>) -> Self {
        Self { declaration: Self::declared(), processes }
    }

    /// What the tool says about itself.
    pub(crate) fn declared() -> ToolDeclaration {
        let name = ToolName::builtin("palyra.process.status");
        ToolDeclaration::of::<ProcessInput>(name, "Look at a process", "look at process `{id}`")
            .reads(EffectScope::WorkspaceRead)
            .output(Integrity::ToolTrusted, Confidentiality::Private)
            .showing_inline()
            .offered(Offering::OnDemand)
    }
}

#[async_trait]
impl Tool for ProcessStatus {
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
        report(&self.processes, running, &invocation).await
    }
}

/// How a process is, with the changes it made if it has ended.
pub(super) async fn report(
    processes: &Arc<Processes>,
    running: Arc<Running>,
    invocation: &Invocation,
) -> Result<ToolOutput, ToolError> {
    let mut content = running.described();
    let (workspace, artifacts) = (Arc::clone(&invocation.workspace), Arc::clone(&invocation.artifacts));
    let ended = Arc::clone(&running);
    let stop = invocation.cancel.clone();
    let changed = blocking(move || ended.changes(&workspace, artifacts.as_ref(), &stop)).await?;
    let (out, error) = (running.stream(Which::Out).total, running.stream(Which::Error).total);
    content.push_str(&format!("; it printed {out} bytes, and {error} to standard error"));
    let mut output = ToolOutput::text(String::new(), label(&processes.options));
    if let Some(changed) = changed {
        if !changed.changes.is_empty() {
            content.push_str(&format!("; it changed {} files of the workspace", changed.changes.len()));
        }
        for line in &changed.not_covered {
            content.push_str(&format!("\ncannot be undone: {line}"));
        }
        output.changes = changed.changes;
    }
    let state = match running.state() {
        State::Runs => json!({ "state": "running" }),
        State::Lost(reason) => json!({ "state": "lost", "reason": reason }),
        State::Ended(report) => json!({ "state": "ended", "exit": report.exit, "cause": report.cause }),
    };
    output.content = content;
    output.data = Some(json!({ "process": state, "stdout_bytes": out, "stderr_bytes": error, "tier": running.tier }));
    Ok(output)
}
