//! `palyra.process.logs`: what a background process has printed.

use std::sync::Arc;

use async_trait::async_trait;
use palyra_common::{Confidentiality, EffectScope, Integrity, runtime_contract_enum};
use palyra_tools::{
    CallResource, Invocation, Offering, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::running::Which;
use crate::process::Processes;
use crate::process::capture::Cut;
use crate::process::outcome::label;

/// Shows what a background process has printed: without `from` its beginning and its end, with `from` everything from that byte on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProcessLogsInput {
    /// The id that palyra.process.start gave.
    id: String,
    /// Which stream: `stdout` (when left out) or `stderr`.
    #[serde(default)]
    stream: Option<LogStream>,
    /// Byte to go on from, as the last call named it.
    #[serde(default)]
    from: Option<u64>,
}

runtime_contract_enum! {
    /// A stream of a process.
    pub enum LogStream("log_stream") {
        /// Standard output.
        Stdout = "stdout" | "out",
        /// Standard error.
        Stderr = "stderr" | "err",
    }
}

/// The tool.
pub(crate) struct ProcessLogs {
    declaration: ToolDeclaration,
    processes: Arc<Processes>,
}

impl ProcessLogs {
    pub(crate) fn new(processes: Arc<Processes>) -> Self {
        Self { declaration: Self::declared(), processes }
    }

    /// What the tool says about itself.
    pub(crate) fn declared() -> ToolDeclaration {
        let name = ToolName::builtin("palyra.process.logs");
        ToolDeclaration::of::<ProcessLogsInput>(name, "Read process output", "read the output of process `{id}`")
            .reads(EffectScope::WorkspaceRead)
            .output(Integrity::ToolTrusted, Confidentiality::Private)
            .showing_inline()
            .offered(Offering::OnDemand)
    }
}

#[async_trait]
impl Tool for ProcessLogs {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        let id = arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        Ok(CallResource::tool(format!("process:{id}")))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let input: ProcessLogsInput = serde_json::from_value(invocation.arguments.clone()).map_err(|error| {
            ToolError::argument(self.declaration.name.as_str(), "arguments", "invalid", error.to_string())
        })?;
        let running = self.processes.background.find(invocation.run_id, &input.id)?;
        let which = if input.stream == Some(LogStream::Stderr) { Which::Error } else { Which::Out };
        let limit = invocation.limits.inline_bytes.min(self.processes.options.output_bytes);
        let (text, cut, next) = {
            let stream = running.stream(which);
            match input.from {
                Some(from) => {
                    let bytes = stream.from(from, limit);
                    let next = from.saturating_add(bytes.len() as u64);
                    let cut = if next < stream.total { Cut::Yes } else { Cut::No };
                    (String::from_utf8_lossy(bytes).into_owned(), cut, next)
                }
                None => {
                    let (text, cut) = stream.excerpt(limit);
                    (text, cut, stream.total)
                }
            }
        };
        let mut output = ToolOutput::text(format!("{}\n{text}", running.described()), label(&self.processes.options))
            .with_data(json!({ "next": next }));
        output.truncated = cut == Cut::Yes;
        Ok(output)
    }
}
