//! The one shape in which every surface reports a failure, and the exit codes that follow from it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// What kind of failure an error is.
    pub enum ErrorCategory("error_category") {
        /// Who the caller is could not be established.
        Auth = "auth",
        /// The request itself is wrong.
        Validation = "validation",
        /// A policy refused.
        Policy = "policy",
        /// The named thing does not exist.
        NotFound = "not_found",
        /// The request contradicts the present state.
        Conflict = "conflict",
        /// Something outside Palyra failed.
        Dependency = "dependency",
        /// Palyra cannot serve this now.
        Availability = "availability",
        /// A defect of Palyra.
        Internal = "internal",
    }
}

/// Exit codes of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Everything went well.
    Ok = 0,
    /// A defect of Palyra.
    Internal = 1,
    /// Wrong arguments, configuration or input.
    Validation = 2,
    /// Not authenticated.
    Auth = 3,
    /// The daemon or a service cannot be reached.
    Connectivity = 4,
    /// Not available on this platform or build.
    Unsupported = 5,
    /// A policy refused.
    Policy = 6,
    /// The present state does not allow it, or what is outside of Palyra cannot do it.
    Precondition = 7,
    /// No such thing.
    NotFound = 8,
}

/// One field that failed validation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldError {
    /// Path of the field, such as `run.max_turns`.
    pub field: String,
    /// Stable snake_case code.
    pub code: String,
    /// What is wrong, for a person.
    pub message: String,
}

/// The error that HTTP, gRPC, WebSocket and `--output json` all carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StableErrorEnvelope {
    /// Stable snake_case code with a page in `docs/errors/`.
    pub code: String,
    /// What happened, for a person, in one line.
    pub message: String,
    /// What kind of failure it is.
    pub category: ErrorCategory,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_hint: Option<String>,
    /// Structured facts for programs. Boxed, so that a `Result` with this error stays small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<serde_json::Value>>,
    /// Fields that failed validation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation_errors: Vec<FieldError>,
}

impl StableErrorEnvelope {
    /// An error that will not go away by trying again, without a hint.
    #[must_use]
    pub fn new(code: &str, category: ErrorCategory, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            category,
            retryable: matches!(category, ErrorCategory::Availability),
            recovery_hint: None,
            details: None,
            validation_errors: Vec::new(),
        }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.recovery_hint = Some(hint.into());
        self
    }

    /// Adds structured facts.
    #[must_use]
    pub fn details(mut self, details: serde_json::Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Says whether trying again may help.
    #[must_use]
    pub fn retryable(mut self, retry: Retry) -> Self {
        self.retryable = retry == Retry::MayHelp;
        self
    }

    /// The exit code a command ends with when this is its error.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        if self.code.starts_with("unsupported") {
            return ExitCode::Unsupported;
        }
        match self.category {
            ErrorCategory::Auth => ExitCode::Auth,
            ErrorCategory::Validation => ExitCode::Validation,
            ErrorCategory::Policy => ExitCode::Policy,
            ErrorCategory::NotFound => ExitCode::NotFound,
            ErrorCategory::Conflict => ExitCode::Precondition,
            // What is outside answered, and trying again would give the same: nothing is wrong with the way to it.
            ErrorCategory::Dependency if !self.retryable => ExitCode::Precondition,
            ErrorCategory::Dependency | ErrorCategory::Availability => ExitCode::Connectivity,
            ErrorCategory::Internal => ExitCode::Internal,
        }
    }
}

/// Whether the same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Trying again may help.
    MayHelp,
    /// Trying again gives the same answer.
    Pointless,
}

impl fmt::Display for StableErrorEnvelope {
    /// One line: message, code, hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)?;
        if let Some(hint) = &self.recovery_hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for StableErrorEnvelope {}

/// Implemented by each crate's error type: how it looks to the outside.
pub trait ToStableError {
    /// The envelope that surfaces show for this error.
    fn to_stable(&self) -> StableErrorEnvelope;
}

impl ToStableError for StableErrorEnvelope {
    fn to_stable(&self) -> StableErrorEnvelope {
        self.clone()
    }
}
