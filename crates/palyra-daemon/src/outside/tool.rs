//! One tool of an outside server, as the engine calls it.
//!
//! Everything a server says is untrusted: results carry the label of the tool's classification, and what it says about failures reaches the
//! log and not the planner.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use palyra_common::{Digest, Integrity, Label, ToStableError as _};
use palyra_mcp::{McpCall, McpError, McpProgress, McpServer, OfferedTool};
use palyra_tools::{Invocation, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput};
use serde_json::Value;

/// Longest description that a model is given.
const MAX_DESCRIPTION: usize = 4_096;

/// One tool.
pub(super) struct OutsideTool {
    server: Arc<McpServer>,
    /// The server's own name of it.
    name: String,
    declaration: ToolDeclaration,
}

/// Stands for the arguments while the declaration is made; the server's schema takes its place.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {}

impl OutsideTool {
    pub(super) fn new(server: Arc<McpServer>, offered: &OfferedTool) -> Result<Self, ToolError> {
        let description = &offered.description;
        let title = description.title.as_deref().unwrap_or(&description.name);
        let summary = format!("call {}", offered.name);
        let mut declaration = ToolDeclaration::of::<Anything>(ToolName::new(offered.name.clone())?, title, &summary)
            .classified(&offered.classification);
        declaration.description =
            description.description.clone().unwrap_or_default().chars().take(MAX_DESCRIPTION).collect();
        declaration.input_schema = description.input_schema.clone().into();
        declaration.server = Some(server.name().to_string());
        Ok(Self { server, name: description.name.clone(), declaration })
    }

    fn label(&self) -> Label {
        self.declaration.output.clone().from_source(format!("mcp:{}", self.server.name()))
    }
}

#[async_trait]
impl Tool for OutsideTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    /// The call itself: nobody but the server knows what it touches.
    fn resource(&self, arguments: &Value) -> String {
        let canonical = palyra_agent::canonical_json(arguments);
        format!("{}#{}", self.declaration.name, Digest::of(canonical.as_bytes()))
    }

    /// The tool with its arguments; the steering ones first.
    fn summarise(&self, arguments: &Value) -> String {
        self.declaration.call_line(arguments)
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let progress = invocation.progress;
        let call = McpCall {
            tool: self.name.clone(),
            arguments: invocation.arguments,
            effect_id: invocation.effect_id.to_string(),
            cancel: invocation.cancel,
            // The engine's own limit ends the call; this one is only the server's, and later.
            deadline: self.declaration.timeout + Duration::from_secs(1),
            progress: Some(Arc::new(move |report| {
                progress.step(percent(&report), report.message.as_deref().unwrap_or(""));
            })),
        };
        match self.server.call(call).await {
            Ok(outcome) => {
                let mut label = self.label();
                if outcome.is_error {
                    label.integrity = label.integrity.max(Integrity::Untrusted);
                }
                let mut output = ToolOutput::within(invocation.limits.inline_bytes, &outcome.text, label);
                if outcome.is_error {
                    output.content.insert_str(0, "error: ");
                }
                output.data = outcome.structured.filter(|_| !outcome.is_error && !output.truncated);
                Ok(output)
            }
            Err(McpError::Cancelled { .. }) => Err(ToolError::Cancelled),
            Err(error) => {
                let stable = error.to_stable();
                tracing::warn!(tool = %self.declaration.name, error = %stable, "a tool of an MCP server failed");
                // Code and category are ours; the message may quote the server.
                let mut told = stable;
                told.message = format!("`{}` failed", self.declaration.name);
                told.details = None;
                Err(ToolError::Custom(Box::new(told)))
            }
        }
    }
}

/// How much is done, if the server's numbers make sense.
fn percent(report: &McpProgress) -> Option<u8> {
    let share = report.done / report.total.filter(|total| *total > 0.0)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
    share.is_finite().then(|| (share.clamp(0.0, 1.0) * 100.0) as u8)
}
