//! `palyra.process.start`: a program that goes on after the call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity};
use palyra_sandbox::Stream;
use palyra_tools::{
    CallResource, Containment, ExecutionFacts, Invocation, Offering, Reach, SinkKind, Tool, ToolDeclaration, ToolError,
    ToolName, ToolOutput, Workspace,
};
use serde_json::{Value, json};

use super::background::Running;
use super::input::{ProcessStartInput, parsed, shown, shown_cwd};
use super::launch::Launched;
use super::outcome::label;
use super::{Processes, grant};

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
            .sink("cwd", SinkKind::Command)
            .output(Integrity::ToolTrusted, Confidentiality::Private)
            .showing_inline()
            .offered(Offering::OnDemand)
            .reporting_begin()
    }
}

#[async_trait]
impl Tool for ProcessStart {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool(format!("process:{}:{}", shown_cwd(arguments), shown(arguments))))
    }

    fn summarise(&self, arguments: &Value) -> String {
        format!("start `{}` in `{}`, and let it run", shown(arguments), shown_cwd(arguments))
    }

    fn check(&self, arguments: &Value, workspace: &Workspace) -> Result<(), ToolError> {
        let tool = self.declaration.name.as_str();
        let wanted = parsed::<ProcessStartInput>(tool, arguments)?.wanted(tool, LONGEST)?;
        grant::check(&self.processes.options, workspace, &wanted)
    }

    async fn containment(&self, _: &Value, _: &Arc<Workspace>) -> Containment {
        let why = "it continues beside the run, and what it changes is not known when the call ends";
        Containment::of(vec![Reach::Undo(why.to_owned())])
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let tool = self.declaration.name.as_str();
        let input: ProcessStartInput = parsed(tool, &invocation.arguments)?;
        let wanted = input.wanted(tool, LONGEST)?;
        let processes = Arc::clone(&self.processes);
        processes.background.require_room(invocation.run_id)?;
        let Launched { command, confinement, child, checkpoint, proxies } =
            processes.launch(&invocation, wanted, Stream::Null).await?;
        let running = Running::follow(child, proxies, checkpoint, confinement.tier, command.clone());
        let id = processes.background.add(invocation.run_id, running);
        let mut content = format!(
            "started `{command}` as `{id}`{}; palyra.process.logs shows what it prints, palyra.process.stop ends it\n",
            confinement.fallback()
        );
        confinement.tell_sockets(&mut content);
        let data = json!({ "id": id, "tier": confinement.tier, "confinement": confinement.data() });
        let mut output = ToolOutput::text(content.trim_end(), label(&processes.options)).with_data(data);
        output.execution = Some(ExecutionFacts {
            executor: "sandbox".to_owned(),
            tier: Some(confinement.tier),
            fallback_reasons: confinement.fallback_reasons().to_vec(),
            // It has only begun; what it uses is not known yet.
            cpu_ms: None,
            memory_bytes: None,
            output_bytes: None,
            timed_out: false,
        });
        Ok(output)
    }
}
