//! One tool of an outside server, as the engine calls it.
//!
//! Everything a server says is untrusted: results carry the label of the tool's classification, and what it says about failures reaches the
//! log and not the planner.
//!
//! A server of this machine runs outside of any sandbox and does not say which files it changes. So the workspace is compared before and after each call
//! that may change something, as it is for processes; what differs counts as changed during the call and can be taken back with the run. The processes of a server that we
//! started are observed meanwhile; of a web service none are known, so everything that changed during its calls may be somebody else's.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use palyra_common::{Consequence, Digest, Integrity, Label, StableErrorEnvelope, ToStableError as _};
use palyra_executors::{IdleMonitor, changes_since, checkpoint};
use palyra_mcp::{McpCall, McpError, McpOutcome, McpProgress, McpServer, OfferedTool};
use palyra_tools::{
    CallResource, Changed, Checkpoint, CheckpointStore, Invocation, Tool, ToolDeclaration, ToolError, ToolName,
    ToolOutput, Workspace, WriterVisibility,
};
use serde_json::Value;

/// Longest description that a model is given.
const MAX_DESCRIPTION: usize = 4_096;
/// Most files that a note names.
const MAX_NOTES: usize = 20;

/// One tool.
pub(super) struct OutsideTool {
    server: Arc<McpServer>,
    /// The server's own name of it.
    name: String,
    declaration: ToolDeclaration,
    /// Where copies of the workspace are kept, if a call may change it.
    checkpoints: Option<Arc<CheckpointStore>>,
}

/// A call whose changes are tracked.
struct TrackedCall {
    /// What the workspace was before.
    checkpoint: Checkpoint,
    /// The process of the server, and who observes it.
    observed: Option<(u32, IdleMonitor)>,
}

/// Stands for the arguments while the declaration is made; the server's schema takes its place.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {}

impl OutsideTool {
    pub(super) fn new(
        server: Arc<McpServer>,
        offered: &OfferedTool,
        checkpoints: &Arc<CheckpointStore>,
    ) -> Result<Self, ToolError> {
        let description = &offered.description;
        let title = description.title.as_deref().unwrap_or(&description.name);
        let summary = format!("call {}", offered.name);
        let mut declaration = ToolDeclaration::of::<Anything>(ToolName::new(offered.name.clone())?, title, &summary)
            .classified(&offered.classification)
            .reporting_begin();
        declaration.description =
            description.description.clone().unwrap_or_default().chars().take(MAX_DESCRIPTION).collect();
        declaration.input_schema = description.input_schema.clone().into();
        declaration.server = Some(server.name().to_string());
        let may_write = server.is_local() && declaration.consequence == Consequence::Consequential;
        let checkpoints = may_write.then(|| Arc::clone(checkpoints));
        Ok(Self { server, name: description.name.clone(), declaration, checkpoints })
    }

    /// What the workspace is before a call. A call is not refused because its changes cannot be told; the result says so.
    async fn before(&self, invocation: &Invocation) -> Result<Option<TrackedCall>, ToolError> {
        let Some(store) = &self.checkpoints else { return Ok(None) };
        match checkpoint(store, invocation).await {
            Ok(taken) => {
                let periods = taken.idle_periods();
                let observed = self.server.process_id().map(|id| (id, IdleMonitor::of_tree(id, periods)));
                Ok(Some(TrackedCall { checkpoint: taken, observed }))
            }
            Err(ToolError::Cancelled) => Err(ToolError::Cancelled),
            Err(error) => {
                tracing::warn!(tool = %self.declaration.name, %error, "changes of an outside tool are not tracked");
                Ok(None)
            }
        }
    }

    /// What the call changed, as far as that is known.
    async fn changed(&self, before: Option<TrackedCall>, invocation: &Invocation) -> Changed {
        let untracked = |why: &str| Changed { not_covered: vec![why.to_owned()], ..Changed::default() };
        match before {
            Some(TrackedCall { checkpoint, observed }) => {
                let writers = match observed {
                    // The server may have a container or another program write for it.
                    Some((id, _)) if self.server.process_id() == Some(id) => WriterVisibility::Partial,
                    // It was started anew meanwhile, or is a web service.
                    Some(_) | None => WriterVisibility::Absent,
                };
                let checkpoint = checkpoint.with_writers(writers);
                changes_since(checkpoint, invocation).await.unwrap_or_else(|error| {
                    tracing::warn!(tool = %self.declaration.name, %error, "changes of an outside tool are not tracked");
                    untracked("files that the server changed: the workspace could not be compared")
                })
            }
            None if self.checkpoints.is_some() => {
                untracked("files that the server changed: the workspace could not be copied before")
            }
            None => Changed::default(),
        }
    }

    fn output(&self, outcome: McpOutcome, changed: Changed, inline_bytes: usize) -> ToolOutput {
        let mut label = self.label();
        if outcome.is_error {
            label.integrity = label.integrity.max(Integrity::Untrusted);
        }
        let mut output = ToolOutput::within(inline_bytes, &outcome.text, label);
        if outcome.is_error {
            output.content.insert_str(0, "error: ");
            output.failure = Some("the server reports an error".to_owned());
        }
        output.data = outcome.structured.filter(|_| !outcome.is_error && !output.truncated);
        for line in changed.not_covered.iter().take(MAX_NOTES) {
            output.content.push_str(&format!("\n[cannot be undone: {line}]"));
        }
        output.changes = changed.changes;
        output
    }

    /// Code, category and hint are ours; the message may quote the server and is for the log. A call that failed may have changed files all the same: then it
    /// has a result, which holds them, so that they are shown and can be taken back. So has one whose server went away: nobody knows what it did.
    fn failed(&self, error: &McpError, changed: Changed) -> Result<ToolOutput, ToolError> {
        let stable = error.to_stable();
        tracing::warn!(tool = %self.declaration.name, error = %stable, "an outside tool failed");
        let message = format!("`{}` failed", self.declaration.name);
        let mut ours = StableErrorEnvelope { message, details: None, validation_errors: Vec::new(), ..stable };
        if matches!(error, McpError::ServerRefused { .. }) {
            // It speaks of the words that are left out here.
            ours.recovery_hint = None;
        }
        let broke_off = matches!(error, McpError::Disconnected { .. });
        if changed.changes.is_empty() && !broke_off {
            return Err(match error {
                McpError::Cancelled { .. } => ToolError::Cancelled,
                _ => ToolError::Custom(Box::new(ours)),
            });
        }
        // Names of files are the server's words, so only their number is told.
        let count = changed.changes.len();
        let noted = if count == 0 { String::new() } else { format!("; files changed during the call: {count}") };
        let mut output = ToolOutput::text(format!("{ours}{noted}"), self.label());
        output.broke_off = broke_off;
        output.failure = Some(ours.message);
        output.changes = changed.changes;
        Ok(output)
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
    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        let canonical = palyra_agent::canonical_json(arguments);
        Ok(CallResource::tool(format!("{}#{}", self.declaration.name, Digest::of(canonical.as_bytes()))))
    }

    /// The tool with its arguments; the steering ones first.
    fn summarise(&self, arguments: &Value) -> String {
        self.declaration.call_line(arguments)
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        // Connecting may take longer than the call, and changes nothing. What is wrong with the server, the call itself says.
        tokio::select! {
            () = invocation.cancel.cancelled() => return Err(ToolError::Cancelled),
            _ = self.server.tools() => {}
        }
        let before = self.before(&invocation).await?;
        invocation.begin.record().await?;
        let progress = invocation.progress.clone();
        let call = McpCall {
            tool: self.name.clone(),
            arguments: invocation.arguments.clone(),
            effect_id: invocation.effect_id.to_string(),
            cancel: invocation.cancel.clone(),
            // The engine's own limit ends the call; this one is only the server's, and later.
            deadline: self.declaration.timeout + Duration::from_secs(1),
            progress: Some(Arc::new(move |report| {
                progress.step(percent(&report), report.message.as_deref().unwrap_or(""));
            })),
        };
        let called = self.server.call(call).await;
        let changed = self.changed(before, &invocation).await;
        match called {
            Ok(outcome) => Ok(self.output(outcome, changed, invocation.limits.inline_bytes)),
            Err(error) => self.failed(&error, changed),
        }
    }
}

/// How much is done, if the server's numbers make sense.
fn percent(report: &McpProgress) -> Option<u8> {
    let share = report.done / report.total.filter(|total| *total > 0.0)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
    share.is_finite().then(|| (share.clamp(0.0, 1.0) * 100.0) as u8)
}
