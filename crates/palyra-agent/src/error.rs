//! What can go wrong in the engine, and how it looks to the outside.

use palyra_common::{ErrorCategory, RunId, RunLifecyclePhase, StableErrorEnvelope, ToStableError};
use palyra_journal::JournalError;
use palyra_tools::ToolError;
use thiserror::Error;

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
    /// No such run.
    #[error("there is no run `{0}`")]
    RunNotFound(RunId),
    /// No such session.
    #[error("there is no session `{0}`")]
    SessionNotFound(String),
    /// No such open approval.
    #[error("there is no open approval `{0}`")]
    ApprovalNotFound(String),
    /// No such agreed pattern.
    #[error("there is no agreed pattern `{0}` that still counts")]
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
    #[error("the agreed patterns cannot be put in force: {0}")]
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
    /// The task has no text.
    #[error("the task is empty")]
    EmptyPrompt,
    /// An `@file:` reference cannot be read.
    #[error("`@file:{path}` cannot be read: {source}")]
    BadReference {
        /// The path as written.
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
        why: &'static str,
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

impl ToStableError for AgentError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::Journal(error) => error.to_stable(),
            Self::Tool(error) => error.to_stable(),
            Self::RunNotFound(_) => StableErrorEnvelope::new("run_not_found", ErrorCategory::NotFound, message)
                .hint("`palyra runs list` shows the runs there are"),
            Self::SessionNotFound(_) => StableErrorEnvelope::new("session_not_found", ErrorCategory::NotFound, message)
                .hint("`palyra sessions list` shows the sessions there are"),
            Self::ApprovalNotFound(_) => {
                StableErrorEnvelope::new("approval_not_found", ErrorCategory::NotFound, message)
                    .hint("`palyra approvals list` shows what is waiting for you")
            }
            Self::PatternNotFound(_) => StableErrorEnvelope::new("pattern_not_found", ErrorCategory::NotFound, message)
                .hint("`palyra approvals patterns` shows what was agreed to"),
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
                    .hint(format!("`palyra runs show {run_id}` shows where it stands"))
            }
            Self::EmptyPrompt => StableErrorEnvelope::new("prompt_empty", ErrorCategory::Validation, message)
                .hint("say what is to be done, for example: palyra run \"list the files here\""),
            Self::BadReference { .. } => {
                StableErrorEnvelope::new("file_reference_invalid", ErrorCategory::Validation, message)
                    .hint("references are paths inside the workspace, such as @file:README.md")
            }
            Self::IdempotencyConflict(_) => {
                StableErrorEnvelope::new("idempotency_conflict", ErrorCategory::Conflict, message)
                    .hint("use a new key for a new request")
            }
            Self::BadTape { .. } => StableErrorEnvelope::new("tape_damaged", ErrorCategory::Internal, message)
                .hint("`palyra journal verify` shows what is wrong with the journal"),
            Self::CannotUndo { .. } => StableErrorEnvelope::new("cannot_undo", ErrorCategory::Conflict, message)
                .hint("`palyra runs show` lists what a run changed, and whether it was undone"),
            Self::Stopping => StableErrorEnvelope::new("daemon_stopping", ErrorCategory::Availability, message)
                .hint("try again when it has restarted"),
            Self::Internal(_) => StableErrorEnvelope::new("internal", ErrorCategory::Internal, message),
        }
    }
}
