//! What can go wrong in the engine, and how it looks to the outside.

use palyra_common::{
    CanvasId, Digest, ErrorCategory, RunId, RunLifecyclePhase, SessionId, StableErrorEnvelope, ToStableError,
};
use palyra_journal::JournalError;
use palyra_models::UnknownModel;
use palyra_tools::ToolError;
use thiserror::Error;

use crate::auxiliary::AuxiliaryError;
use crate::machine::Rejected;

/// An error of the engine.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The journal refused or failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A tool, the workspace or the effect store failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// An auxiliary task failed.
    #[error(transparent)]
    Auxiliary(#[from] AuxiliaryError),
    /// No such model.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// No such run.
    #[error("there is no run `{0}`")]
    RunNotFound(RunId),
    /// No such turn.
    #[error("{}", no_turn(*run_id, *turn))]
    TurnNotFound {
        /// The run.
        run_id: RunId,
        /// The turn that was asked for.
        turn: Option<u32>,
    },
    /// A name that no agent can have.
    #[error("`{0}` is not a valid agent name")]
    AgentNameInvalid(String),
    /// No such agent.
    #[error("there is no agent `{name}`")]
    AgentNotFound {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// An agent that makes no sense.
    #[error("invalid `{field}` of the agent: {why}")]
    AgentInvalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The agent changed since the caller looked at it.
    #[error("agent `{name}` is at version {actual}, not {expected}")]
    AgentVersionConflict {
        /// The agent.
        name: String,
        /// The version that the caller saw.
        expected: u64,
        /// The version that it has.
        actual: u64,
    },
    /// A run asks for a looser mode than its agent has.
    #[error("the agent `{name}` requires mode `{least}` or stricter, not `{asked}`")]
    AgentModeLoosened {
        /// The agent.
        name: String,
        /// The mode that it has.
        least: palyra_common::RunMode,
        /// The mode that was asked for.
        asked: palyra_common::RunMode,
    },
    /// Nobody said where to work, and there is no session that could.
    #[error("no working directory given")]
    NoWorkspace,
    /// No such session.
    #[error("there is no session `{0}`")]
    SessionNotFound(String),
    /// The session is put away.
    #[error("session `{0}` is archived")]
    SessionArchived(SessionId),
    /// The session is there, with another content.
    #[error("session `{0}` already exists")]
    SessionExists(SessionId),
    /// The owner has a session of this key.
    #[error("the session key `{0}` is in use")]
    SessionKeyTaken(String),
    /// A name of or in a session does not fit.
    #[error("`{field}` must have 1 to {most} characters and no control characters")]
    SessionFieldInvalid {
        /// The field.
        field: &'static str,
        /// Most characters.
        most: usize,
    },
    /// The session changed since the caller looked at it.
    #[error("session `{session_id}` is at version {actual}, not {expected}")]
    VersionConflict {
        /// The session.
        session_id: SessionId,
        /// The version that the caller saw.
        expected: u64,
        /// The version that it has.
        actual: u64,
    },
    /// There is no such point to fork at.
    #[error("the session cannot be forked there: {0}")]
    ForkPointInvalid(String),
    /// No such input waits.
    #[error("no input `{0}` is waiting in the session")]
    InputNotFound(String),
    /// Too much waits in the session.
    #[error("the session's input queue is full ({waiting} waiting)")]
    InputQueueFull {
        /// How many wait.
        waiting: usize,
    },
    /// Nobody said where to work.
    #[error("session `{0}` has no working directory")]
    WorkspaceMissing(SessionId),
    /// A tool of the client cannot be offered.
    #[error("the client's tool `{name}` cannot be offered: {why}")]
    ClientToolInvalid {
        /// Its name.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// There is nothing to summarise.
    #[error("session `{0}` has nothing to summarise")]
    NothingToCompact(SessionId),
    /// There is no summary to take back.
    #[error("session `{0}` has no summary of its own to revert")]
    NothingToRevert(SessionId),
    /// No such open approval.
    #[error("there is no open approval `{0}`")]
    ApprovalNotFound(String),
    /// No such agreed pattern.
    #[error("there is no active allowed pattern `{0}`")]
    PatternNotFound(String),
    /// Whoever answered may not.
    #[error("`{by}` may not answer this: {reason}")]
    AnswerRefused {
        /// Who answered.
        by: String,
        /// Why not.
        reason: String,
    },
    /// The answer reaches further than what was shown.
    #[error("approval `{0}` offers no pattern, so it can only be allowed once")]
    NothingOffered(String),
    /// What people agreed to cannot be put in force.
    #[error("the allowed patterns cannot be applied: {0}")]
    Patterns(StableErrorEnvelope),
    /// The run's phase does not allow it.
    #[error("run `{run_id}` is {phase}: {why}")]
    WrongPhase {
        /// The run.
        run_id: RunId,
        /// Its phase.
        phase: RunLifecyclePhase,
        /// Why not.
        why: &'static str,
    },
    /// A document, a patch or the values of a form do not fit.
    #[error(transparent)]
    A2ui(#[from] palyra_a2ui::A2uiError),
    /// No such canvas.
    #[error("there is no canvas `{0}`")]
    CanvasNotFound(CanvasId),
    /// The canvas is closed.
    #[error("canvas `{0}` is closed")]
    CanvasClosed(CanvasId),
    /// Nothing on the canvas that could be acted on has this id.
    #[error("canvas `{canvas_id}` has no form or approval card `{component_id}`")]
    CanvasComponentNotFound {
        /// The canvas.
        canvas_id: CanvasId,
        /// The id that was named.
        component_id: String,
    },
    /// Too many canvases are open.
    #[error("the session's limit of {open} open canvases is reached")]
    CanvasesFull {
        /// How many.
        open: u64,
    },
    /// No such binding of a hook.
    #[error("there is no hook binding `{0}`")]
    HookBindingNotFound(String),
    /// A binding that makes no sense.
    #[error("invalid `{field}` of the hook binding: {why}")]
    HookBindingInvalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// An event that only runs themselves dispatch.
    #[error("`{0}` is a run event and cannot be dispatched from outside")]
    HookEventInvalid(palyra_common::HookEvent),
    /// The task has no text.
    #[error("the task is empty")]
    EmptyPrompt,
    /// A file that a task refers to or that came with it cannot be taken in.
    #[error("{}", unreadable(path, source))]
    BadReference {
        /// The path as written, or the name of the attachment.
        path: String,
        /// Why.
        source: ToolError,
    },
    /// The same idempotency key came with another request.
    #[error("the idempotency key `{0}` was used for another request")]
    IdempotencyConflict(String),
    /// A record of a tape is missing or unreadable.
    #[error("tape record {seq}: {message}")]
    BadTape {
        /// Position on the run's tape.
        seq: u64,
        /// What is wrong.
        message: String,
    },
    /// Undo is not possible.
    #[error("run `{run_id}` cannot be undone: {why}")]
    CannotUndo {
        /// The run.
        run_id: RunId,
        /// Why.
        why: String,
    },
    /// A program wants to endorse a file.
    #[error("`{by}` may not endorse a file with a credential that a program holds")]
    EndorsementRefused {
        /// Whose credential.
        by: String,
    },
    /// The file does not hold what somebody looked at.
    #[error("`{path}` holds something else by now: {now}")]
    FileChanged {
        /// The file.
        path: String,
        /// What it holds.
        now: Digest,
    },
    /// A person has answered for its content already.
    #[error("`{path}` needs no endorsement: this content was endorsed before")]
    FileNotLabelled {
        /// The file.
        path: String,
    },
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
    /// A defect.
    #[error("internal error: {0}")]
    Internal(String),
}

impl AgentError {
    /// A rejected input as an error about its run.
    #[must_use]
    pub fn rejected(run_id: RunId, rejected: &Rejected) -> Self {
        Self::WrongPhase { run_id, phase: rejected.phase, why: rejected.why }
    }
}

fn no_turn(run_id: RunId, turn: Option<u32>) -> String {
    match turn {
        Some(turn) => format!("run {run_id} had no turn {turn}"),
        None => format!("run {run_id} has not called its model yet"),
    }
}

/// Most errors of tools name the path themselves.
fn unreadable(path: &str, source: &ToolError) -> String {
    let reason = source.to_string();
    if reason.contains(&format!("`{path}`")) { reason } else { format!("`{path}` cannot be read: {reason}") }
}

impl ToStableError for AgentError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::Journal(error) => error.to_stable(),
            Self::Tool(error) => error.to_stable(),
            Self::Auxiliary(error) => error.to_stable(),
            Self::UnknownModel(error) => error.to_stable(),
            Self::RunNotFound(_) => StableErrorEnvelope::new("run_not_found", ErrorCategory::NotFound, message)
                .hint("run `palyra runs list` to see all runs"),
            Self::TurnNotFound { .. } => StableErrorEnvelope::new("turn_not_found", ErrorCategory::NotFound, message)
                .hint("`palyra runs show ID` shows how many turns the run had"),
            Self::AgentNameInvalid(_) => {
                StableErrorEnvelope::new("agent_name_invalid", ErrorCategory::Validation, message)
                    .hint("use 1 to 64 lower-case letters, digits, `-` and `_`")
            }
            Self::AgentNotFound { nearest, .. } => {
                let meant = nearest.as_ref().map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
                StableErrorEnvelope::new("agent_not_found", ErrorCategory::NotFound, message)
                    .hint(format!("{meant}run `palyra agents list` to see all agents"))
            }
            Self::AgentInvalid { .. } => StableErrorEnvelope::new("agent_invalid", ErrorCategory::Validation, message)
                .hint("docs/agents.md describes each field"),
            Self::AgentVersionConflict { expected, actual, .. } => {
                StableErrorEnvelope::new("version_conflict", ErrorCategory::Conflict, message)
                    .details(serde_json::json!({ "expected": expected, "actual": actual }))
                    .hint("read the agent again, and repeat the change if it still applies")
            }
            Self::AgentModeLoosened { .. } => {
                StableErrorEnvelope::new("agent_mode_loosened", ErrorCategory::Policy, message)
                    .hint("omit the mode, choose a stricter one, or use another agent")
            }
            Self::NoWorkspace => StableErrorEnvelope::new("workspace_missing", ErrorCategory::Validation, message)
                .hint("name a directory, or set one for the agent"),
            Self::SessionNotFound(_) => StableErrorEnvelope::new("session_not_found", ErrorCategory::NotFound, message)
                .hint("run `palyra sessions list` to see all sessions"),
            Self::SessionArchived(_) => StableErrorEnvelope::new("session_archived", ErrorCategory::Conflict, message)
                .hint("unarchive it first, or fork it"),
            Self::SessionExists(_) => StableErrorEnvelope::new("session_exists", ErrorCategory::Conflict, message)
                .hint("omit the id, or use a new one"),
            Self::SessionKeyTaken(_) => StableErrorEnvelope::new("session_key_taken", ErrorCategory::Conflict, message)
                .hint("resolve the key to get its session"),
            Self::SessionFieldInvalid { .. } => {
                StableErrorEnvelope::new("session_field_invalid", ErrorCategory::Validation, message)
                    .hint("shorten it to one line")
            }
            Self::VersionConflict { expected, actual, .. } => {
                StableErrorEnvelope::new("version_conflict", ErrorCategory::Conflict, message)
                    .details(serde_json::json!({ "expected": expected, "actual": actual }))
                    .hint("read the session again, and repeat the change if it still applies")
            }
            Self::ForkPointInvalid(_) => {
                StableErrorEnvelope::new("fork_point_invalid", ErrorCategory::Validation, message)
                    .hint("name a run of the session's history and a position on its tape")
            }
            Self::InputNotFound(_) => StableErrorEnvelope::new("input_not_found", ErrorCategory::NotFound, message)
                .hint("it may have become a run already; see the session's runs"),
            Self::InputQueueFull { .. } => {
                StableErrorEnvelope::new("input_queue_full", ErrorCategory::Availability, message)
                    .hint("wait for the active run, or withdraw inputs that are no longer needed")
            }
            Self::WorkspaceMissing(_) => {
                StableErrorEnvelope::new("workspace_missing", ErrorCategory::Validation, message)
                    .hint("name a directory, or set one for the session")
            }
            Self::ClientToolInvalid { .. } => {
                StableErrorEnvelope::new("client_tool_invalid", ErrorCategory::Validation, message)
                    .hint("use 1 to 64 letters, digits, `_` or `-`, and each name once")
            }
            Self::NothingToCompact(_) => {
                StableErrorEnvelope::new("nothing_to_compact", ErrorCategory::Conflict, message)
                    .hint("keep fewer exchanges, or continue until there are more")
            }
            Self::NothingToRevert(_) => {
                StableErrorEnvelope::new("nothing_to_revert", ErrorCategory::Conflict, message)
                    .hint("`palyra sessions explain` shows what was summarised; a summary that came with a fork stays with it")
            }
            Self::ApprovalNotFound(_) => {
                StableErrorEnvelope::new("approval_not_found", ErrorCategory::NotFound, message)
                    .hint("`palyra approvals list` shows what is waiting for you")
            }
            Self::PatternNotFound(_) => StableErrorEnvelope::new("pattern_not_found", ErrorCategory::NotFound, message)
                .hint("`palyra approvals patterns` lists what was allowed"),
            Self::AnswerRefused { .. } => {
                StableErrorEnvelope::new("approval_not_permitted", ErrorCategory::Policy, message)
                    .hint("the owner of the run can answer")
            }
            Self::NothingOffered(_) => {
                StableErrorEnvelope::new("approval_scope_unavailable", ErrorCategory::Validation, message)
                    .hint("answer with scope `once`")
            }
            Self::Patterns(error) => error.clone(),
            Self::WrongPhase { run_id, .. } => {
                StableErrorEnvelope::new("run_wrong_phase", ErrorCategory::Conflict, message)
                    .hint(format!("`palyra runs show {run_id}` shows its state"))
            }
            Self::A2ui(error) => error.to_stable(),
            Self::CanvasNotFound(_) => StableErrorEnvelope::new("canvas_not_found", ErrorCategory::NotFound, message)
                .hint("run `palyra canvas list` to see all canvases"),
            Self::CanvasClosed(_) => StableErrorEnvelope::new("canvas_closed", ErrorCategory::Conflict, message)
                .hint("write to the session instead, or have the agent show it again"),
            Self::CanvasComponentNotFound { .. } => {
                StableErrorEnvelope::new("canvas_component_not_found", ErrorCategory::NotFound, message)
                    .hint("read the canvas again: forms and approval cards have an id")
            }
            Self::CanvasesFull { .. } => StableErrorEnvelope::new("canvases_full", ErrorCategory::Conflict, message)
                .hint("change an open page with `palyra.a2ui.patch`, or close one"),
            Self::HookBindingNotFound(_) => {
                StableErrorEnvelope::new("hook_binding_not_found", ErrorCategory::NotFound, message)
                    .hint("list the bindings to see their ids")
            }
            Self::HookBindingInvalid { .. } => {
                StableErrorEnvelope::new("hook_binding_invalid", ErrorCategory::Validation, message)
                    .hint("docs/hooks.md describes each field")
            }
            Self::HookEventInvalid(_) => {
                StableErrorEnvelope::new("hook_event_invalid", ErrorCategory::Validation, message)
                    .hint("only events of the gateway and of skills are dispatched from outside")
            }
            Self::EmptyPrompt => StableErrorEnvelope::new("prompt_empty", ErrorCategory::Validation, message)
                .hint("give a task, for example: palyra run \"list the files here\""),
            Self::BadReference { .. } => {
                StableErrorEnvelope::new("file_reference_invalid", ErrorCategory::Validation, message)
                    .hint("an attachment and what is piped in must be text or an image; references are paths inside the workspace, such as @file:README.md")
            }
            Self::IdempotencyConflict(_) => {
                StableErrorEnvelope::new("idempotency_conflict", ErrorCategory::Conflict, message)
                    .hint("use a new key for a new request")
            }
            Self::BadTape { .. } => StableErrorEnvelope::new("tape_damaged", ErrorCategory::Internal, message)
                .hint("`palyra journal verify` shows what is wrong with the journal"),
            Self::CannotUndo { run_id, .. } => StableErrorEnvelope::new("cannot_undo", ErrorCategory::Conflict, message)
                .hint(format!("`palyra runs show {run_id}` shows its state and what it changed")),
            Self::EndorsementRefused { .. } => {
                StableErrorEnvelope::new("endorsement_refused", ErrorCategory::Policy, message)
                    .hint("a person endorses files, on the machine of the daemon: `palyra files endorse PATH`")
            }
            Self::FileChanged { .. } => StableErrorEnvelope::new("file_changed", ErrorCategory::Conflict, message)
                .hint("look at it again: `palyra files endorse PATH`"),
            Self::FileNotLabelled { .. } => {
                StableErrorEnvelope::new("file_not_labelled", ErrorCategory::Conflict, message)
                    .hint("`palyra files labels` lists the files whose content is not trusted")
            }
            Self::Stopping => StableErrorEnvelope::new("daemon_stopping", ErrorCategory::Availability, message)
                .hint("try again when it has restarted"),
            Self::Internal(_) => StableErrorEnvelope::new("internal", ErrorCategory::Internal, message),
        }
    }
}
