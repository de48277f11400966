//! Everything a command can fail with, and how that looks to the outside.

use std::io;
use std::path::PathBuf;

use palyra_client::ClientError;
use palyra_common::config::ConfigError;
use palyra_common::{ErrorCategory, SecretError, StableErrorEnvelope, ToStableError};
use palyra_journal::JournalError;
use palyra_mcp::McpError;
use palyra_models::{AccountsError, ModelError, PriceFileError};
use palyra_plugins_build::BuildError;
use palyra_policy::PolicyError;
use palyra_policy_prove::ProveError;
use palyra_sandbox::SandboxError;
use palyra_skills::SkillError;
use thiserror::Error;

/// A command that failed.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    /// Talking to the daemon failed, or the daemon refused.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The token for a named daemon cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The journal on disk is wrong or in use.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A policy is faulty.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Nothing could be shown about policies.
    #[error(transparent)]
    Prove(#[from] ProveError),
    /// An outside server or one of its files is wrong.
    #[error(transparent)]
    Mcp(#[from] McpError),
    /// A server could not be added.
    #[error("{}", .0.message)]
    McpAdd(Box<StableErrorEnvelope>),
    /// A canvas holds something that is no document.
    #[error(transparent)]
    A2ui(#[from] palyra_a2ui::A2uiError),
    /// `models.toml` is wrong, or does not have what was asked for.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// A model cannot be asked.
    #[error("{}", .0.message)]
    Model(Box<StableErrorEnvelope>),
    /// A sandbox could not be looked at or does not hold.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A skill, its archive or its key is wrong.
    #[error(transparent)]
    Skill(#[from] SkillError),
    /// A skill could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A plugin could not be run here.
    #[error("{}", .0.message)]
    Plugin(Box<StableErrorEnvelope>),
    /// Standard output cannot be written.
    #[error("cannot write the output: {source}")]
    Output {
        /// What the system said.
        source: io::Error,
    },
    /// The runtime could not be set up.
    #[error("cannot start: {source}")]
    Runtime {
        /// What the system said.
        source: io::Error,
    },
    /// The arguments are not what the command takes.
    #[error("{reason}")]
    Usage {
        /// What is wrong with them.
        reason: String,
        /// What the command takes.
        usage: Option<String>,
    },
    /// No task was given.
    #[error("no task given")]
    TaskEmpty,
    /// The task on standard input cannot be used.
    #[error("cannot read the task from standard input: {reason}")]
    TaskUnreadable {
        /// Why.
        reason: String,
    },
    /// A file to be attached cannot be used.
    #[error("cannot attach `{}`: {reason}", path.display())]
    Attachment {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The workspace does not exist or is not a directory.
    #[error("cannot use the workspace `{}`: {reason}", path.display())]
    Workspace {
        /// What was given.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Nothing has this id.
    #[error("{}", no_match(kind, wanted))]
    NoMatch {
        /// `run`, `session`, `approval`, `pattern` or `decision`.
        kind: &'static str,
        /// What was given.
        wanted: String,
    },
    /// What was given cannot be the name of what is meant.
    #[error("{message}")]
    Named {
        /// What is wrong with it.
        message: String,
        /// Where the right names are.
        hint: String,
    },
    /// Several things could be meant.
    #[error("`{wanted}` is ambiguous; {} ids match: {}", matches.len(), shown(matches))]
    Ambiguous {
        /// What was given.
        wanted: String,
        /// What it could be.
        matches: Vec<String>,
    },
    /// `palyrad` is not installed.
    #[error("cannot find the daemon program `palyrad` in {beside} or on PATH")]
    DaemonMissing {
        /// The directory of this program.
        beside: String,
    },
    /// The daemon could not be started.
    #[error("cannot start the daemon: {reason}")]
    DaemonStart {
        /// Why.
        reason: String,
        /// How its exit is to be understood.
        category: ErrorCategory,
        /// What it said last.
        log: Vec<String>,
    },
    /// The daemon did not do what it was told in time.
    #[error("the daemon (process {pid}) is still running after {seconds} s")]
    DaemonLingers {
        /// Its process.
        pid: u32,
        /// How long was waited.
        seconds: u64,
    },
    /// A file could not be read or written.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    File {
        /// `read`, `write`, …
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl From<ModelError> for CliError {
    fn from(error: ModelError) -> Self {
        Self::Model(Box::new(error.to_stable()))
    }
}

impl From<PriceFileError> for CliError {
    fn from(error: PriceFileError) -> Self {
        Self::Model(Box::new(error.to_stable()))
    }
}

/// `last` matches nothing only where nothing is.
fn no_match(kind: &str, wanted: &str) -> String {
    if wanted.eq_ignore_ascii_case("last") && matches!(kind, "run" | "session" | "canvas") {
        return format!("there is no {kind} yet");
    }
    format!("no {kind} matches `{wanted}`")
}

fn shown(matches: &[String]) -> String {
    let mut text = matches.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    if matches.len() > 3 {
        text.push_str(", …");
    }
    text
}

impl CliError {
    /// The envelope that this error is shown as.
    pub(crate) fn into_envelope(self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::Client(error) => error.to_stable(),
            Self::Config(error) => error.to_stable(),
            Self::Secret(error) => error.to_stable(),
            Self::Journal(error) => error.to_stable(),
            Self::Mcp(error) => error.to_stable(),
            Self::McpAdd(envelope) => *envelope,
            Self::A2ui(error) => error.to_stable(),
            Self::Accounts(error) => error.to_stable(),
            Self::Model(envelope) => *envelope,
            Self::Sandbox(error) => error.to_stable(),
            Self::Skill(error) => error.to_stable(),
            Self::Build(error) => error.to_stable(),
            Self::Plugin(envelope) => *envelope,
            Self::Policy(error) => error.to_stable(),
            Self::Prove(error) => error.to_stable(),
            Self::Output { .. } => StableErrorEnvelope::new("output_failed", ErrorCategory::Conflict, message)
                .hint("check the free space and the permissions of the output"),
            Self::Runtime { .. } => StableErrorEnvelope::new("start_failed", ErrorCategory::Internal, message)
                .hint("the system may be out of file descriptors or threads"),
            Self::Usage { usage, .. } => {
                let hint = usage.map_or_else(
                    || "run the command with `--help` for its usage".to_owned(),
                    |usage| format!("usage: {usage}; for more, add `--help`"),
                );
                StableErrorEnvelope::new("command_line_invalid", ErrorCategory::Validation, message).hint(hint)
            }
            Self::TaskEmpty => StableErrorEnvelope::new("task_empty", ErrorCategory::Validation, message)
                .hint("say what to do: palyra run \"list the files\"; or read the task from standard input: palyra run - < FILE"),
            Self::TaskUnreadable { .. } => {
                StableErrorEnvelope::new("task_unreadable", ErrorCategory::Validation, message)
                    .hint("a task is UTF-8 text of at most 1 MiB; refer to large files in it with @file:PATH")
            }
            Self::Attachment { .. } => StableErrorEnvelope::new(
                "attachment_unreadable",
                ErrorCategory::Validation,
                message,
            )
            .hint(
                "attach text or an image of at most 5 MiB; refer to files of the workspace in the task with @file:PATH",
            ),
            Self::Workspace { .. } => {
                StableErrorEnvelope::new("workspace_not_found", ErrorCategory::NotFound, message)
                    .hint("name a directory that exists and may be entered")
            }
            Self::NoMatch { kind, wanted } => StableErrorEnvelope::new("id_not_found", ErrorCategory::NotFound, message)
                .hint(match kind {
                    "run" | "session" if wanted.eq_ignore_ascii_case("last") => {
                        "start a run with: palyra run \"list the files\"".to_owned()
                    }
                    "approval" => "see `palyra approvals list`; the id, its beginning or its end is enough".to_owned(),
                    "pattern" => "see `palyra approvals patterns`; the id, its beginning or its end is enough".to_owned(),
                    "decision" => "see `palyra runs tape RUN` for the calls of a run; give RUN/CALL".to_owned(),
                    "canvas" => {
                        "see `palyra canvas list`; the id, its beginning or its end, or `last` is enough".to_owned()
                    }
                    _ => format!("see `palyra {kind}s list`; the id, its beginning or its end, or `last` is enough"),
                }),
            Self::Named { hint, .. } => {
                StableErrorEnvelope::new("command_line_invalid", ErrorCategory::Validation, message).hint(hint)
            }
            Self::Ambiguous { matches, .. } => {
                StableErrorEnvelope::new("id_ambiguous", ErrorCategory::Validation, message)
                    .hint("give more characters of the id")
                    .details(serde_json::json!({ "matches": matches }))
            }
            Self::DaemonMissing { .. } => {
                StableErrorEnvelope::new("daemon_not_installed", ErrorCategory::Conflict, message)
                    .hint("install `palyrad` next to `palyra`")
            }
            Self::DaemonStart { category, log, .. } => {
                StableErrorEnvelope::new("daemon_start_failed", category, message)
                    .hint("see `palyra daemon logs`; `palyra daemon run` starts it in the foreground")
                    .details(serde_json::json!({ "log": log }))
            }
            Self::DaemonLingers { .. } => {
                StableErrorEnvelope::new("daemon_lingers", ErrorCategory::Availability, message)
                    .hint("see `palyra daemon logs`; unfinished runs survive even a kill")
            }
            Self::File { .. } => StableErrorEnvelope::new("file_unusable", ErrorCategory::Validation, message)
                .hint("check the path, its permissions and what is in it"),
        }
    }
}
