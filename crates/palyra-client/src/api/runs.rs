//! Runs: creating, listing and looking at them, and asking for their tape.

use std::collections::{BTreeMap, BTreeSet};

use palyra_budget::MicroUsd;
use palyra_common::{
    ChangeAttribution, DataOrigin, Digest, RunId, RunLifecyclePhase, RunMode, SandboxTier, SessionId,
    StableErrorEnvelope, StatusDetail, TerminationReason, Timestamp, runtime_contract_enum,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approvals::ApprovalView;
use super::attachments::AttachmentParams;
use super::bindings::BindingPlace;

/// A new run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRunParams {
    /// Continues this session; excludes `session_key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Continues the session with this name, or begins it; excludes `session_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// Continues the session that is bound to this place outside; excludes `session_id` and `session_key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<BindingPlace>,
    /// The task in plain words.
    pub prompt: String,
    /// Absolute path of the directory the run works in; the session's or the agent's own when absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// Another model than the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent that carries it out, by name; the session's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How untrusted results are treated, if not as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RunMode>,
    /// Tighter limits than the configured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RunLimitsParams>,
    /// What has to be there before the run may end with its answer, in plain words. A judge without tools looks at each answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub objective: Option<String>,
    /// Answers that are judged before the last one is taken as it is; 3 if nothing is said. Only with an objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub max_attempts: Option<u32>,
    /// Tools of the caller's own: their calls are handed back instead of carried out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub client_tools: Vec<ClientToolParams>,
    /// Files that go with the task, as `attachment.add` answered; of the caller's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub attachments: Vec<AttachmentParams>,
    /// What was said before, oldest first, as the caller tells it; what the session holds when there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ExchangeParams>,
    /// The same key with the same parameters gives the same run again; with others it is a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Something that was asked and answered before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExchangeParams {
    /// What was asked.
    pub prompt: String,
    /// What was answered. It is trusted as far as it was when it was given, and not at all if it never was.
    pub answer: String,
}

/// A tool of the caller's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientToolParams {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: serde_json::Value,
}

/// Limits of one run. They can only be tighter than the configured ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunLimitsParams {
    /// Model turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u32>,
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tool_calls: Option<u32>,
    /// Seconds of work; time waiting for a person does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub wall_clock_seconds: Option<u64>,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRunsParams {
    /// Only those of one session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Only those in this phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RunLifecyclePhase>,
    /// How many at most; the daemon has its own upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
    /// Only runs older than this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RunId>,
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListRunsResponse {
    /// Newest first.
    pub runs: Vec<RunView>,
    /// Pass as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<RunId>,
}

/// One run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// The run.
    pub run_id: RunId,
    /// Its session.
    pub session_id: SessionId,
    /// Whose it is.
    #[serde(default)]
    pub owner: String,
    /// Where it stands.
    pub phase: RunLifecyclePhase,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<TerminationReason>,
    /// More about the end, when the reason alone does not say enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<StatusDetail>,
    /// The task; shortened in lists, whole in [`RunDetail`].
    pub prompt: String,
    /// The directory it works in.
    pub workspace: String,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its first turn began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it reached a terminal phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Model turns so far.
    pub turns: u32,
    /// Tool calls so far.
    pub tool_calls: u32,
    /// The last position on its tape.
    pub last_seq: u64,
    /// The model it uses.
    pub model: String,
    /// Whether its file changes were taken back.
    pub undone: bool,
}

/// Everything about one run but its tape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDetail {
    /// The run itself.
    #[serde(flatten)]
    pub run: RunView,
    /// The final answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// How untrusted results are treated.
    pub mode: RunMode,
    /// The agent that carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<RunAgentView>,
    /// What the run set out to do outside the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub envelope: Vec<IntentView>,
    /// The planner's list of steps, as it stands now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<PlanStepView>,
    /// Net file changes, by path.
    pub changes: Vec<FileChangeView>,
    /// Calls that the run proposed and that were not made: refused, given up, or impossible as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<CallNotRunView>,
    /// Programs that ran with less isolation than asked for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reduced_isolation: Vec<ReducedIsolationView>,
    /// Configured sources of tools that offered nothing when the run began or was resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable_tools: Vec<UnavailableToolsView>,
    /// Questions that wait for a person, oldest first.
    pub pending_approvals: Vec<ApprovalView>,
    /// What the model consumed.
    pub usage: RunUsage,
    /// Where the time went.
    pub timings: RunTimings,
}

/// One step of a run's plan. The model wrote it, knowing all that it had read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStepView {
    /// What to do.
    pub text: String,
    /// How far it is: `pending`, `in_progress` or `done`.
    pub status: String,
}

/// A source of tools that a run had to do without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnavailableToolsView {
    /// The source, such as `mcp:mail`.
    pub source: String,
    /// Why it offered nothing.
    pub reason: String,
}

/// A call whose program ran with less isolation than asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReducedIsolationView {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments; absent if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// The tier it ran in.
    pub tier: SandboxTier,
    /// Why the tier asked for was not available.
    pub reasons: Vec<String>,
}

/// A call that a run proposed and that was not made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallNotRunView {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments; absent if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// Why it was not made; the code says whether it was refused.
    pub error: StableErrorEnvelope,
}

/// The agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunAgentView {
    /// Its name.
    pub agent_id: String,
    /// The version that the run took; absent if nobody had set it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// One effect that a run is meant to have: its mandate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IntentView {
    /// The tool.
    pub tool: String,
    /// Where the effect goes, as far as it was named.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub destinations: BTreeSet<String>,
    /// Values of other arguments by name; `{"each": TOOL}` stands for whatever that tool lists.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
    /// How often it may still be done; absent means as often as the work needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Places whose data it may carry there, such as `workspace` or `mcp.calendar`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub from: BTreeSet<DataOrigin>,
}

/// Changes what a run is meant to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditEnvelopeParams {
    /// What is meant from now on as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<IntentView>,
    /// Tools that are no longer meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

runtime_contract_enum! {
    /// What happened to a file.
    pub enum FileChangeKind("file_change_kind") {
        /// It was not there before.
        Created = "created",
        /// Its content changed.
        Modified = "modified",
        /// It is gone.
        Deleted = "deleted",
    }
}

/// One file that a run changed, from before its first change to after its last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChangeView {
    /// Path inside the workspace.
    pub path: String,
    /// What happened.
    pub kind: FileChangeKind,
    /// Digest before; absent if it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// Digest after; absent if it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
    /// Whether the run itself wrote it, or it was only seen to differ after a program or an outside server had run.
    #[serde(default)]
    pub attribution: ChangeAttribution,
}

/// What a run's model calls consumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunUsage {
    /// Tokens the model read.
    pub input_tokens: u64,
    /// Tokens the model wrote.
    pub output_tokens: u64,
    /// What that cost, in millionths of a US dollar; absent where nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    /// Whether a price or a count was not known, so that `cost` is the most that it can have been.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_assumed: bool,
}

/// Where a run's time went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTimings {
    /// From acceptance to the end, or to now.
    pub total_ms: u64,
    /// Waiting for the model.
    pub model_ms: u64,
    /// Waiting for tools; calls that ran together count once.
    pub tools_ms: u64,
    /// Waiting for a person.
    pub waiting_ms: u64,
}

/// Which part of a run's tape to stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunTapeParams {
    /// The first position wanted; from the beginning when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_seq: Option<u64>,
    /// How many events at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// Whether to wait for events that are yet to come, until the run is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<bool>,
    /// Whether to tell, while following, how calls under way get on. Such events are `status` events with `progress`; they repeat the
    /// position of the event before them, are not recorded and may be missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<bool>,
}
