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
use serde_json::{Map, Value};

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
        declaration.input_schema = description.input_schema.clone();
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
        let empty = Map::new();
        let members = arguments.as_object().unwrap_or(&empty);
        let steers = |name: &String| self.declaration.sinks.iter().any(|sink| sink.argument == *name);
        let mut named: Vec<(&String, &Value)> = members.iter().filter(|(_, value)| !value.is_null()).collect();
        named.sort_by_key(|(name, _)| !steers(name));
        let parts: Vec<String> = named.into_iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect();
        format!("{} ({})", self.declaration.name, parts.join(", "))
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
                let (content, cut) = bounded(&outcome.text, invocation.limits.inline_bytes);
                let mut output =
                    ToolOutput::text(if outcome.is_error { format!("error: {content}") } else { content }, label);
                output.truncated = cut;
                output.data = outcome.structured.filter(|_| !outcome.is_error && !cut);
                Ok(output)
            }
            Err(McpError::Cancelled { .. }) => Err(ToolError::Cancelled),
            Err(error) => {
                let stable = error.to_stable();
                tracing::warn!(tool = %self.declaration.name, error = %stable, "an outside tool failed");
                // Code and category are ours; the message may quote the server.
                let mut told = stable;
                told.message = format!("`{}` failed", self.declaration.name);
                told.details = None;
                Err(ToolError::Custom(Box::new(told)))
            }
        }
    }
}

/// Longest value shown inside a summary line, in characters.
const SHOWN_CHARACTERS: usize = 120;

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARACTERS).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        line.push('…');
    }
    line
}

/// How much is done, if the server's numbers make sense.
fn percent(report: &McpProgress) -> Option<u8> {
    let share = report.done / report.total.filter(|total| *total > 0.0)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
    share.is_finite().then(|| (share.clamp(0.0, 1.0) * 100.0) as u8)
}

fn bounded(text: &str, limit: usize) -> (String, bool) {
    if text.len() <= limit {
        return (text.to_owned(), false);
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (text.get(..end).unwrap_or_default().to_owned(), true)
}
