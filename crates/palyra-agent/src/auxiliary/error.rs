//! What can go wrong with an auxiliary task, and how it looks to the outside.

use palyra_common::{
    AuxiliaryTaskId, AuxiliaryTaskKind, ErrorCategory, FieldError, Retry, StableErrorEnvelope, ToStableError,
};
use thiserror::Error;

/// An error of an auxiliary task.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AuxiliaryError {
    /// What it was given does not fit the contract.
    #[error("invalid input for a `{kind}` task: `{field}`: {why}")]
    Input {
        /// The kind of task.
        kind: AuxiliaryTaskKind,
        /// The field.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// No answer fitted the contract, the second one neither.
    #[error("the model gave no valid answer to a `{kind}` task: {why}")]
    Output {
        /// The kind of task.
        kind: AuxiliaryTaskKind,
        /// What was wrong with the last one.
        why: String,
    },
    /// The model failed, or may not be asked.
    #[error("{}", .0.message)]
    Model(Box<StableErrorEnvelope>),
    /// Somebody stopped it, or nobody waits for it any more.
    #[error("auxiliary task `{0}` was cancelled")]
    Cancelled(AuxiliaryTaskId),
    /// Too many wait.
    #[error("the queue of auxiliary tasks is full ({waiting} waiting)")]
    QueueFull {
        /// How many wait.
        waiting: usize,
    },
    /// No such task.
    #[error("there is no auxiliary task `{0}`")]
    NotFound(AuxiliaryTaskId),
}

impl AuxiliaryError {
    pub(crate) fn input(kind: AuxiliaryTaskKind, field: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Input { kind, field: field.into(), why: why.into() }
    }
}

impl ToStableError for AuxiliaryError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::Input { field, why, .. } => {
                let mut envelope =
                    StableErrorEnvelope::new("auxiliary_input_invalid", ErrorCategory::Validation, message)
                        .hint("docs/auxiliary.md describes the input of each kind");
                envelope.validation_errors.push(FieldError {
                    field: field.clone(),
                    code: envelope.code.clone(),
                    message: why.clone(),
                });
                envelope
            }
            Self::Output { .. } => {
                StableErrorEnvelope::new("auxiliary_output_invalid", ErrorCategory::Dependency, message)
                    .hint("request less at once, or use a model that follows a JSON Schema")
            }
            Self::Model(error) => (**error).clone(),
            Self::Cancelled(_) => StableErrorEnvelope::new("auxiliary_cancelled", ErrorCategory::Conflict, message)
                .hint("run it again if you still need its answer"),
            Self::QueueFull { .. } => {
                StableErrorEnvelope::new("auxiliary_queue_full", ErrorCategory::Availability, message)
                    .retryable(Retry::MayHelp)
                    .hint("wait until some of them finish; `palyra auxiliary list` shows them")
            }
            Self::NotFound(_) => StableErrorEnvelope::new("auxiliary_task_not_found", ErrorCategory::NotFound, message)
                .hint("run `palyra auxiliary list` to see all tasks"),
        }
    }
}
