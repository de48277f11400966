//! Sessions: conversations made of runs that share history.

use palyra_common::{InputMode, RunId, RunMode, SessionId, Timestamp, runtime_contract_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bindings::BindingPlace;
use super::runs::RunView;

/// Which sessions to list, newest activity first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessionsParams {
    /// How many at most; the daemon has its own upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
    /// Goes on from here: `next_before` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Which of them as to archiving; those that are not archived when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<ArchivedFilter>,
}

/// A page of sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListSessionsResponse {
    /// The one with the newest activity first.
    pub sessions: Vec<SessionView>,
    /// Pass as `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
}

runtime_contract_enum! {
    /// Whether a list of sessions holds archived ones.
    pub enum ArchivedFilter("archived_filter") {
        /// It does not.
        Hide = "hide",
        /// Nothing else.
        Only = "only",
        /// Both.
        Include = "include",
    }
}

/// A new session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSessionParams {
    /// A name of the caller's own, unique among its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// A place outside that it is bound to from now on. If a session is bound to it already, that session is the answer and nothing is begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<BindingPlace>,
    /// What people see; the first words of its first prompt when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How untrusted results are treated in its runs, if not as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RunMode>,
    /// Its settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SessionSettingsView>,
}

/// What runs of a session use when they name nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionSettingsView {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Absolute path of the directory to work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The agent, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Finds a session by its key, or starts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveSessionParams {
    /// The key.
    pub session_key: String,
    /// Title of a session that has to be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The session of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolveSessionResponse {
    /// The session.
    pub session: SessionView,
    /// Whether it was started for this request.
    pub created: bool,
}

/// Another title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameSessionParams {
    /// The title.
    pub title: String,
}

/// Puts a session away, or takes it out again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchiveSessionParams {
    /// Whether it shall be archived.
    pub archived: bool,
}

/// Where a new session parts from another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkSessionParams {
    /// The last run that both share; all of them when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The last position on that run's tape that both share; the whole run when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Title of the new session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

runtime_contract_enum! {
    /// How a session is written down.
    pub enum ExportFormat("export_format") {
        /// For programs.
        Json = "json",
        /// For people.
        Markdown = "markdown",
    }
}

/// How to write a session down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportSessionParams {
    /// For programs or for people; for people when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ExportFormat>,
}

/// A session written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExportSessionResponse {
    /// How.
    pub format: ExportFormat,
    /// The text, if it is for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    /// The document, if it is for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<serde_json::Value>,
}

/// How untrusted results are treated in a session's runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetSessionModeParams {
    /// The mode; the configured one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RunMode>,
}

/// Something to write to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionInputParams {
    /// The text.
    pub text: String,
    /// What happens to it while a run is at work; it waits for its own run when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<InputMode>,
    /// Absolute path of the directory a new run works in; the session's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

runtime_contract_enum! {
    /// What became of something written to a session.
    pub enum InputFate("input_fate") {
        /// A run began with it.
        Started = "started",
        /// The run at work got it.
        Steered = "steered",
        /// It waits.
        Queued = "queued",
    }
}

/// What became of something written to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInputResponse {
    /// In one word.
    pub fate: InputFate,
    /// The run that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunView>,
    /// Its id while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_id: Option<String>,
    /// How many wait before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
}

/// Something that waits in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedInputView {
    /// Its id.
    pub input_id: String,
    /// The text.
    pub text: String,
    /// How it was sent.
    pub mode: InputMode,
    /// Who sent it.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// What waits in a session, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionQueueResponse {
    /// First comes first.
    pub inputs: Vec<QueuedInputView>,
}

/// Takes back something that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithdrawInputParams {
    /// Its id.
    pub input_id: String,
}

/// What a client needs to go on with a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResumeSessionResponse {
    /// The session.
    pub session: SessionView,
    /// Its runs that are not over, oldest first.
    pub active_runs: Vec<RunView>,
    /// What waits in it.
    pub queued: Vec<QueuedInputView>,
}

/// How a session came to be as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainSessionResponse {
    /// The session.
    pub session: SessionView,
    /// What happened, in order.
    pub steps: Vec<SessionStepView>,
}

/// One thing that happened to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStepView {
    /// When.
    pub at: Timestamp,
    /// Who did it, where somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The record of the journal that says so, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// What, such as `created` or `renamed`.
    pub event: String,
    /// What there is to know about it.
    pub details: serde_json::Value,
}

/// What compacting a session's history keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionView {
    /// Runs whose exchange stays as it is, oldest first.
    pub kept: Vec<RunId>,
    /// Runs that later ones see only through the summary, oldest first.
    pub summarised: Vec<RunId>,
    /// What the summary says was asked.
    pub asked: String,
    /// What it says was answered.
    pub answered: String,
    /// Bytes that later runs are told without it.
    pub bytes_before: u64,
    /// Bytes that they are told with it.
    pub bytes_after: u64,
    /// Whether it holds from now on, or was only shown.
    pub applied: bool,
    /// How what was answered was summarised: by a `model`, or `extractive`, by first sentences.
    #[serde(default)]
    pub method: String,
    /// What else there is to say about how it was made, or would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What taking a compaction back came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevertCompactionResponse {
    /// The session.
    pub session: SessionView,
    /// Exchanges that later runs are told whole again.
    pub whole_again: u64,
    /// Exchanges that an earlier summary still stands for.
    pub still_summarised: u64,
}

/// One session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// The session.
    pub session_id: SessionId,
    /// Whose it is.
    pub owner: String,
    /// Grows with every change; commands may ask for it with `expected_version`.
    pub version: u64,
    /// The name its creator gave it, unique among their sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// First words of its first prompt.
    pub title: String,
    /// When it began.
    pub created_at: Timestamp,
    /// When something last happened in it.
    pub updated_at: Timestamp,
    /// How many runs it has.
    pub run_count: u64,
    /// When it was put away, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
    /// The session it parted from, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// How untrusted results are treated, if not as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RunMode>,
    /// What its runs use when they name nothing else.
    #[serde(default)]
    pub settings: SessionSettingsView,
}

/// Which runs of a session to show with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSessionParams {
    /// How many at most; the daemon has its own upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
    /// Only runs older than this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RunId>,
}

/// One session with a page of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionDetail {
    /// The session itself.
    #[serde(flatten)]
    pub session: SessionView,
    /// The newest of its runs before `before`, oldest first.
    pub runs: Vec<RunView>,
    /// Where older runs go on, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<RunId>,
}
