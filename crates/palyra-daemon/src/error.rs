//! Why the daemon could not start or go on. What goes wrong with a single request is `http/error.rs`.

use std::io;
use std::path::PathBuf;

use palyra_agent::AgentError;
use palyra_common::config::ConfigError;
use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};
use palyra_identity::IdentityError;
use palyra_journal::JournalError;
use palyra_mcp::McpError;
use palyra_policy::PolicyError;
use palyra_safety::SafetyError;
use palyra_telemetry::TelemetryError;
use palyra_tools::ToolError;
use thiserror::Error;

/// A failure of the daemon as a whole.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// The arguments are not what the daemon takes.
    #[error("{reason}")]
    CommandLine {
        /// What is wrong with them.
        reason: String,
    },
    /// The configuration is not in order.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The journal cannot be opened or closed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The engine cannot start.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The tools or the effect store cannot be set up.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The policies cannot be loaded: nothing may start without them.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The scanner cannot be built: nothing passes unscanned.
    #[error(transparent)]
    Safety(#[from] SafetyError),
    /// The outside servers cannot be read.
    #[error(transparent)]
    Mcp(#[from] McpError),
    /// The log or the export cannot be set up, or the service manager passed what cannot be served.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// The model provider cannot be set up.
    #[error("{}", .0.message)]
    Provider(Box<StableErrorEnvelope>),
    /// Identities cannot be set up: nobody could be let in.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// What the dispatcher keeps cannot be read.
    #[error("{}", .0.message)]
    Kept(Box<StableErrorEnvelope>),
    /// A configured value that only the part it is for can judge.
    #[error("configuration key `{key}`: {}", .reason.message)]
    Value {
        /// The key.
        key: String,
        /// What is wrong with its value.
        reason: Box<StableErrorEnvelope>,
    },
    /// Another daemon serves this state.
    #[error("the state in `{root}` is in use by {holder}", root = root.display())]
    StateInUse {
        /// The state root.
        root: PathBuf,
        /// Who has it, such as `process 4711`.
        holder: String,
    },
    /// The state root belongs to another user.
    #[error("the state root `{root}` belongs to user {uid}, not to the current user", root = root.display())]
    StateRootForeign {
        /// The state root.
        root: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// Other users may replace files in the state root.
    #[error("other users may write to the state root `{root}` (mode {mode:o})", root = root.display())]
    StateRootExposed {
        /// The state root.
        root: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A file of the state root cannot be used.
    #[error("cannot {action} `{path}`: {source}", path = path.display())]
    StateFile {
        /// What was attempted, such as `write`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The system refuses something that every daemon needs.
    #[error("cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl DaemonError {
    /// An error about a file, for `map_err`.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::StateFile { action, path, source }
    }

    /// A wrong value of a configuration key.
    pub(crate) fn config(key: &str, reason: &StableErrorEnvelope) -> Self {
        Self::Value { key: key.to_owned(), reason: Box::new(reason.clone()) }
    }

    /// An error of the system, for `map_err`.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { action, source }
    }
}

impl ToStableError for DaemonError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::CommandLine { .. } => {
                StableErrorEnvelope::new("command_line_invalid", ErrorCategory::Validation, message)
                    .hint("usage: palyrad [--state-root DIR] [--config FILE]; see `--help` for more")
            }
            Self::Config(error) => error.to_stable(),
            Self::Journal(error) => error.to_stable(),
            Self::Agent(error) => error.to_stable(),
            Self::Tool(error) => error.to_stable(),
            Self::Policy(error) => error.to_stable(),
            Self::Mcp(error) => error.to_stable(),
            Self::Safety(error) => error.to_stable(),
            Self::Identity(error) => error.to_stable(),
            Self::Telemetry(error) => error.to_stable(),
            Self::Provider(envelope) | Self::Kept(envelope) => (**envelope).clone(),
            Self::Value { reason, key } => {
                let hint = reason.recovery_hint.clone();
                StableErrorEnvelope::new("config_invalid_value", ErrorCategory::Validation, message)
                    .hint(hint.unwrap_or_else(|| format!("`palyra config explain {key}` shows the format")))
            }
            Self::StateInUse { .. } => StableErrorEnvelope::new("state_in_use", ErrorCategory::Conflict, message).hint(
                "stop the other daemon with `palyra daemon stop`, or point PALYRA_STATE_ROOT at another directory",
            ),
            Self::StateRootForeign { .. } => {
                StableErrorEnvelope::new("state_root_foreign", ErrorCategory::Policy, message)
                    .hint("run as its owner, or point PALYRA_STATE_ROOT at a directory of your own")
            }
            Self::StateRootExposed { root, .. } => {
                StableErrorEnvelope::new("state_root_exposed", ErrorCategory::Policy, message)
                    .hint(format!("run `chmod go-w {}`", root.display()))
            }
            Self::StateFile { .. } => StableErrorEnvelope::new("state_file_unusable", ErrorCategory::Conflict, message)
                .hint("check the disk and the permissions of the state root"),
            Self::System { .. } => StableErrorEnvelope::new("system_refused", ErrorCategory::Internal, message)
                .hint("check this user's limits: processes, open files, memory"),
        }
    }
}
