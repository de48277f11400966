//! `palyra.process.start`: a program that goes on after the call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity, command_line};
use palyra_sandbox::Stdio;
use palyra_sandbox::Stream;
use palyra_tools::{CheckpointLimits, Invocation, SinkKind, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput};
use serde_json::{Value, json};

use super::Processes;
use super::background::Running;
use super::input::{ProcessStartInput, shown, shown_cwd};
use super::outcome::label;
use super::readiness::refused;
use super::run::{blocking, stoppable};

/// Longest life of a background process; its run ends it earlier.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The tool.
pub(super) struct ProcessStart {
    declaration: ToolDeclaration,
    processes: Arc<Processes>,
}

impl ProcessStart {
    pub(super) fn new(processes: Arc<Processes>) -> Self {
        Self { declaration: Self::declared(), processes }
    }

    /// What the tool says about itself.
    pub(super) fn declared() -> ToolDeclaration {
        let name = ToolName::builtin("palyra.process.start");
        ToolDeclaration::of::<ProcessStartInput>(name, "Start program", "start `{argv}`")
            .sink("argv", SinkKind::Command)
            .sink("env", SinkKind::Command)
            .output(Integrity::ToolTrusted, Confidentiality::Private)
    }
}

#[async_trait]
impl Tool for ProcessStart {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn resource(&self, arguments: &Value) -> String {
        format!("process:{}:{}", shown_cwd(arguments), shown(arguments))
    }

    fn summarise(&self, arguments: &Value) -> String {
        format!("start `{}` in `{}`, and let it run", shown(arguments), shown_cwd(arguments))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let tool = self.declaration.name.as_str();
        let input: ProcessStartInput = serde_json::from_value(invocation.arguments.clone())
            .map_err(|error| ToolError::argument(tool, "arguments", "invalid", error.to_string()))?;
        let wanted = input.wanted(tool, LONGEST)?;
        let processes = Arc::clone(&self.processes);
        processes.background.require_room(invocation.run_id)?;
        let ready = stoppable(&invocation, processes.readiness.get()).await??;
        let command = command_line(wanted.argv.iter().map(String::as_str));
        let (plan, way_out) = {
            let (processes, ready) = (Arc::clone(&processes), Arc::clone(&ready));
            let (workspace, effect) = (Arc::clone(&invocation.workspace), invocation.effect_id.clone());
            blocking(move || processes.planned(&ready, &workspace, &effect, &wanted)).await?
        };
        let checkpoint = {
            let (processes, workspace) = (Arc::clone(&processes), Arc::clone(&invocation.workspace));
            let cancel = invocation.cancel.clone();
            blocking(move || processes.checkpoints.take(&workspace, CheckpointLimits::default(), &cancel)).await?
        };
        let stdio = Stdio { stdin: Stream::Null, stdout: Stream::Pipe, stderr: Stream::Pipe };
        let mut child = ready.sandbox.spawn(&plan, stdio).await.map_err(|error| refused(&error))?;
        let proxies = way_out.map(|way| way.serve(&processes.egress, &mut child)).transpose()?.unwrap_or_default();
        let running = Running::follow(child, proxies, checkpoint, plan.tier(), command.clone());
        let id = processes.background.add(invocation.run_id, running);
        let content = format!(
            "started `{command}` as `{id}`; palyra.process.logs shows what it prints, palyra.process.stop ends it"
        );
        Ok(ToolOutput::text(content, label(&processes.options)).with_data(json!({ "id": id, "tier": plan.tier() })))
    }
}
