//! What can go wrong in planning and starting a sandbox, and how it looks to the outside.
//!
//! INVARIANT: each of these means that nothing of the guest's program ran, except [`SandboxError::Lost`], which says that the
//! outcome of a process that did start is unknown.

use std::path::PathBuf;

use palyra_common::{ErrorCategory, Retry, SandboxTier, StableErrorEnvelope, ToStableError};
use thiserror::Error;

/// Why no plan can be made from a grant on this host.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The tier is not one for processes.
    #[error("tier `{}` does not run processes", tier.as_str())]
    TierInvalid {
        /// The tier asked for.
        tier: SandboxTier,
    },
    /// The host cannot give the tier and the grant allows no other.
    #[error("tier `{}` is not available on this host: {}", tier.as_str(), missing.join("; "))]
    TierUnavailable {
        /// The tier asked for.
        tier: SandboxTier,
        /// What is missing.
        missing: Vec<String>,
    },
    /// The grant opens the network in a way that the host cannot confine.
    #[error("network access cannot be confined on this host: {reason}")]
    NetworkUnavailable {
        /// Why not.
        reason: String,
    },
    /// A limit of zero.
    #[error("the limit `{limit}` is zero")]
    LimitZero {
        /// Which limit.
        limit: &'static str,
    },
    /// A share that would cover a part of the system.
    #[error("`{}` cannot be shared with a sandbox: {reason}", path.display())]
    PlaceReserved {
        /// The path.
        path: PathBuf,
        /// Why not.
        reason: &'static str,
    },
    /// A working directory that is not inside a shared directory.
    #[error("the working directory `{}` is not inside a shared directory", path.display())]
    WorkingDirectoryOutside {
        /// The directory.
        path: PathBuf,
    },
    /// A variable whose name is not in the grant.
    #[error("the environment variable `{name}` is not granted")]
    VariableNotGranted {
        /// Its name.
        name: String,
    },
    /// A text that cannot be passed to a program.
    #[error("{what} cannot be passed to a program: {reason}")]
    ArgumentInvalid {
        /// Which text.
        what: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More arguments and variables than the kernel takes.
    #[error("{what} is {bytes} bytes long; at most {limit} are allowed")]
    ArgumentsTooLong {
        /// Which text, or all together.
        what: String,
        /// How long it is.
        bytes: usize,
        /// What fits.
        limit: usize,
    },
}

impl ToStableError for PlanError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let (code, category, hint) = match self {
            Self::TierInvalid { .. } => ("sandbox_tier_invalid", ErrorCategory::Validation, "use tier B or tier C"),
            Self::TierUnavailable { .. } => (
                "sandbox_tier_unavailable",
                ErrorCategory::Availability,
                "`palyra sandbox explain` shows what this host supports; the grant may allow tier B instead",
            ),
            Self::NetworkUnavailable { .. } => (
                "sandbox_network_unavailable",
                ErrorCategory::Availability,
                "run it in tier C, or without network; `palyra sandbox explain` shows what this host supports",
            ),
            Self::LimitZero { .. } => {
                ("sandbox_limit_zero", ErrorCategory::Validation, "set a limit above zero; limits cannot be disabled")
            }
            Self::PlaceReserved { .. } => {
                ("sandbox_place_reserved", ErrorCategory::Validation, "share a narrower directory")
            }
            Self::WorkingDirectoryOutside { .. } => (
                "sandbox_cwd_outside",
                ErrorCategory::Validation,
                "choose a directory inside the workspace, written as an absolute path",
            ),
            Self::VariableNotGranted { .. } => (
                "sandbox_variable_not_granted",
                ErrorCategory::Policy,
                "remove the variable, or add its name to the grant's environment list",
            ),
            Self::ArgumentInvalid { .. } => {
                ("sandbox_argument_invalid", ErrorCategory::Validation, "fix the argument; nothing was started")
            }
            Self::ArgumentsTooLong { .. } => (
                "sandbox_arguments_too_long",
                ErrorCategory::Validation,
                "pass the data through standard input or a file in the workspace",
            ),
        };
        StableErrorEnvelope::new(code, category, self.to_string()).hint(hint).retryable(Retry::Pointless)
    }
}

/// A failure of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// No plan can be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// This platform has no sandbox.
    #[error("sandboxed processes are not supported on this platform")]
    Unsupported,
    /// A path that cannot be shared.
    #[error("`{}` cannot be shared with a sandbox: {reason}", path.display())]
    PlaceUnusable {
        /// The path.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The program does not exist inside the sandbox.
    #[error("the program `{program}` was not found in the sandbox")]
    ProgramNotFound {
        /// What was asked for.
        program: String,
    },
    /// The program exists and cannot be executed.
    #[error("the program `{program}` cannot be executed: {reason}")]
    ProgramNotExecutable {
        /// What was asked for.
        program: String,
        /// What the kernel said.
        reason: String,
    },
    /// The working directory cannot be entered.
    #[error("the working directory `{}` cannot be entered: {reason}", path.display())]
    WorkingDirectoryUnusable {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        reason: String,
    },
    /// A step of the set-up failed; nothing was executed.
    #[error("the sandbox could not be set up at step `{step}`: {reason}")]
    SetupFailed {
        /// Which step.
        step: String,
        /// What the kernel said.
        reason: String,
    },
    /// The launcher could not be started or answered with nonsense.
    #[error("the sandbox launcher failed: {reason}")]
    LauncherFailed {
        /// What happened.
        reason: String,
    },
    /// The supervisor of a process vanished; the process is dead and how it ended is unknown.
    #[error("the sandboxed process was lost because its supervisor died")]
    Lost,
    /// The escape battery found that the tier does not hold on this host.
    #[error("tier `{}` is not offered: {}", tier.as_str(), failures.join("; "))]
    TierUnproven {
        /// The tier.
        tier: SandboxTier,
        /// Which denials failed.
        failures: Vec<String>,
    },
}

impl ToStableError for SandboxError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let (code, category, hint) = match self {
            Self::Plan(error) => return error.to_stable(),
            // The code begins with `unsupported`, because that is what selects the exit code for a platform that lacks a feature.
            Self::Unsupported => {
                ("unsupported_sandbox", ErrorCategory::Availability, "run the daemon on Linux 5.13 or newer")
            }
            Self::PlaceUnusable { .. } => {
                ("sandbox_place_unusable", ErrorCategory::NotFound, "share a directory or regular file that exists")
            }
            Self::ProgramNotFound { .. } => (
                "sandbox_program_not_found",
                ErrorCategory::NotFound,
                "check the name; a program outside /usr must be in a shared directory",
            ),
            Self::ProgramNotExecutable { .. } => (
                "sandbox_program_not_executable",
                ErrorCategory::Validation,
                "check the file's mode, interpreter and format",
            ),
            Self::WorkingDirectoryUnusable { .. } => {
                ("sandbox_cwd_unusable", ErrorCategory::NotFound, "choose a directory that exists and can be entered")
            }
            Self::SetupFailed { .. } => (
                "sandbox_setup_failed",
                ErrorCategory::Dependency,
                "nothing was executed; `palyra sandbox explain` shows what this host supports",
            ),
            Self::LauncherFailed { .. } => {
                ("sandbox_launcher_failed", ErrorCategory::Internal, "nothing was executed; see the daemon's log")
            }
            Self::Lost => (
                "sandbox_lost",
                ErrorCategory::Internal,
                "the process is dead; check what it left in the workspace before running it again",
            ),
            Self::TierUnproven { .. } => (
                "sandbox_tier_unproven",
                ErrorCategory::Availability,
                "`palyra sandbox prove` shows every check; use a tier that holds",
            ),
        };
        StableErrorEnvelope::new(code, category, self.to_string()).hint(hint).retryable(Retry::Pointless)
    }
}
