//! The tool trait and what passes through it.
//!
//! A tool is a declaration and one asynchronous function. It gets everything it may touch in its [`Invocation`]; a tool that
//! reaches for the environment, the system clock or a path of its own is a defect.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use palyra_common::{ChangeAttribution, Clock, Consequence, Digest, Label, RunId, SandboxTier};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    Artifacts, BeginReport, CallResource, Containment, DecidedAs, EffectId, EffectStore, EntryFacts, ToolDeclaration,
    ToolError, ToolProgress, Workspace,
};

/// One tool.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What the tool says about itself.
    fn declaration(&self) -> &ToolDeclaration;

    /// What a call acts on, in one normal form: policies judge it and approvals are bound to it, so two spellings of one path are equal. An error means that
    /// nobody can tell, and the call is refused. Blocks for a few looks at the file system at most.
    fn resource(&self, arguments: &Value, workspace: &Workspace) -> Result<CallResource, ToolError>;

    /// One line that tells a person what a call would do.
    fn summarise(&self, arguments: &Value) -> String {
        self.declaration().summarise(arguments)
    }

    /// Whether the effect of this very call matters outside the run; what the tool declares unless it knows better.
    fn consequence(&self, arguments: &Value) -> Consequence {
        let _ = arguments;
        self.declaration().consequence
    }

    /// What a call can reach, as it would be carried out now. Asked before any decision, and answered for again when a call that was decided as contained begins.
    async fn containment(&self, arguments: &Value, workspace: &Arc<Workspace>) -> Containment {
        let _ = (arguments, workspace);
        Containment::unconfined()
    }

    /// Whether a call with these arguments, which fit the schema, could be made, as far as that is known without making it. Asked before any decision, so that
    /// no person is asked about a call that would be refused anyway. Changes nothing, and blocks for a few looks at the file system at most.
    fn check(&self, arguments: &Value, workspace: &Workspace) -> Result<(), ToolError> {
        let _ = (arguments, workspace);
        Ok(())
    }

    /// Does the work. Returns within 100 ms of a cancellation, except that a write which has passed its point of no return is
    /// finished first.
    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError>;
}

/// One call and everything it may touch.
#[derive(Clone)]
pub struct Invocation {
    /// The run that calls.
    pub run_id: RunId,
    /// The model's id of the call.
    pub call_id: String,
    /// The same after a crash as before it.
    pub effect_id: EffectId,
    /// The arguments, already checked against the schema.
    pub arguments: Value,
    /// The files it may touch.
    pub workspace: Arc<Workspace>,
    /// Where large results and before-images go.
    pub artifacts: Arc<dyn Artifacts>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Fires when the call shall stop.
    pub cancel: CancellationToken,
    /// How long the engine lets it work; a tool that wants to say more than "too late" ends earlier by itself.
    pub time_limit: Duration,
    /// How much it may produce and take.
    pub limits: ToolLimits,
    /// Where writes are staged so that they happen exactly once.
    pub effects: Arc<EffectStore>,
    /// Where it may tell how it gets on.
    pub progress: ToolProgress,
    /// Where it reports that its effect begins.
    pub begin: BeginReport,
    /// What it was decided as.
    pub decided_as: DecidedAs,
}

/// Bounds on one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLimits {
    /// Most bytes of content that go to the model; the rest goes to an artifact.
    pub inline_bytes: usize,
    /// Largest file that is written, patched or kept as a before-image.
    pub file_bytes: u64,
    /// Largest patch.
    pub patch_bytes: usize,
    /// Most files of one patch.
    pub patch_files: usize,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self { inline_bytes: 64 << 10, file_bytes: 32 << 20, patch_bytes: 1 << 20, patch_files: 256 }
    }
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: String,
    /// The same facts for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// How far the content may be trusted and shown.
    pub label: Label,
    /// The files that were changed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Where the whole content is, when `content` is only its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactRef>,
    /// Whether there is more than `content` shows.
    pub truncated: bool,
    /// What went wrong in the work that the tool carried out, such as `exit code 1`. The tool did its part, and `content` says the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether whoever did the work went away in the middle of it, so that nobody knows how much of it was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broke_off: bool,
    /// Who executed the call and what that took, where it was not this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionFacts>,
}

/// What is attested about a call that was executed elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionFacts {
    /// Who executed it.
    pub executor: String,
    /// How well it was confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<SandboxTier>,
    /// Why it ran in a weaker tier than the one asked for; empty unless it did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback_reasons: Vec<String>,
    /// Processor time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Largest memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes of output before anything was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Whether it ended because its time was over.
    pub timed_out: bool,
}

impl ToolOutput {
    /// A plain text result.
    #[must_use]
    pub fn text(content: impl Into<String>, label: Label) -> Self {
        Self {
            content: content.into(),
            data: None,
            label,
            changes: Vec::new(),
            artifact: None,
            truncated: false,
            failure: None,
            broke_off: false,
            execution: None,
        }
    }

    /// The same result with facts for programs.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

/// One file before and after. `None` means that there was, or is, no file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Path inside the workspace, in its escaped text form.
    pub path: String,
    /// Content before; kept as an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// Content after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
    /// Permission bits before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_mode: Option<u32>,
    /// Directories that came, or went, with the file, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// How it is known that the run changed it.
    #[serde(default, skip_serializing_if = "ChangeAttribution::is_written")]
    pub attribution: ChangeAttribution,
    /// What it is about, where it is not just the content of a regular file.
    #[serde(default, skip_serializing_if = "EntryFacts::is_plain")]
    pub entry: EntryFacts,
}

/// A stored payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRef {
    /// What it is found by.
    pub digest: Digest,
    /// Its size.
    pub bytes: u64,
    /// Its type, such as `text/plain; charset=utf-8`.
    pub media_type: String,
}
