//! What can be wrong with configuration. One [`ConfigError`] carries every problem that was found, the first one first.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use crate::{ErrorCategory, FieldError, StableErrorEnvelope, ToStableError};

/// Where a wrong key or value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In a file.
    File {
        /// Which.
        path: PathBuf,
        /// In which line, from 1.
        line: usize,
    },
    /// In an environment variable.
    Env(String),
    /// In what a person just gave.
    Argument,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}: ", path.display()),
            Self::Env(variable) => write!(f, "environment variable `{variable}`: "),
            Self::Argument => Ok(()),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigProblem {
    /// The file exists and cannot be read.
    #[error("cannot read the configuration file `{}`: {reason}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file that was named does not exist.
    #[error("the configuration file `{}` named by PALYRA_CONFIG does not exist", path.display())]
    Missing {
        /// Which file.
        path: PathBuf,
    },
    /// The file is not TOML.
    #[error("{}:{line}:{column}: not valid TOML: {message}", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// In which line, from 1.
        line: usize,
        /// At which character, from 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// The file is of a version this build does not read.
    #[error("{}:{line}: configuration version `{found}` is not supported; this build reads version 1", path.display())]
    VersionUnsupported {
        /// Which file.
        path: PathBuf,
        /// In which line, from 1.
        line: usize,
        /// What stands there.
        found: String,
    },
    /// No key has this name.
    #[error("{origin}unknown key `{key}`{}", did_you_mean(suggestion.as_deref()))]
    UnknownKey {
        /// Where it stands.
        origin: Origin,
        /// What was given.
        key: String,
        /// The key that was most likely meant.
        suggestion: Option<String>,
    },
    /// The value is of another type.
    #[error("{origin}expected {expected} for `{key}`; found {found}")]
    WrongType {
        /// Where it stands.
        origin: Origin,
        /// The key.
        key: String,
        /// What the key takes.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The value is of the right type and still wrong.
    #[error("{origin}invalid value for `{key}`: {reason}")]
    InvalidValue {
        /// Where it stands.
        origin: Origin,
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// Two keys contradict each other, or one lacks another.
    #[error("invalid `{key}`: {reason}")]
    Inconsistent {
        /// The key to change.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// The key may not be set in the environment.
    #[error("environment variable `{variable}`: `{key}` can only be set in the configuration file")]
    EnvNotAllowed {
        /// The variable.
        variable: String,
        /// The key.
        key: &'static str,
    },
    /// Other machines could reach the interface, and what that needs is not all there.
    #[error("`{key}` = `{bind}` can be reached from other machines; refused without {}", missing.join(", "))]
    PublicBind {
        /// The key that asks for it.
        key: &'static str,
        /// The address.
        bind: std::net::SocketAddr,
        /// What is not there.
        missing: Vec<&'static str>,
    },
    /// There is nowhere to keep state or configuration.
    #[error("no location for {what}: set one of {variables}")]
    NoPlace {
        /// What there is no place for.
        what: &'static str,
        /// What would give one.
        variables: &'static str,
    },
    /// The file could not be written; it is unchanged.
    #[error("cannot write the configuration file `{}`: {reason}", path.display())]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default()
}

impl ConfigProblem {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "config_unreadable",
            Self::Missing { .. } => "config_missing",
            Self::Syntax { .. } => "config_invalid",
            Self::VersionUnsupported { .. } => "config_version_unsupported",
            Self::UnknownKey { .. } => "config_unknown_key",
            Self::WrongType { .. } => "config_wrong_type",
            Self::InvalidValue { .. } => "config_invalid_value",
            Self::Inconsistent { .. } => "config_inconsistent",
            Self::EnvNotAllowed { .. } => "config_env_not_allowed",
            Self::PublicBind { .. } => "public_bind_refused",
            Self::NoPlace { .. } => "state_root_unknown",
            Self::Unwritable { .. } => "config_unwritable",
        }
    }

    /// The key it is about, where it is about one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::UnknownKey { key, .. }
            | Self::WrongType { key, .. }
            | Self::InvalidValue { key, .. }
            | Self::Inconsistent { key, .. } => Some(key),
            Self::EnvNotAllowed { key, .. } | Self::PublicBind { key, .. } => Some(key),
            Self::VersionUnsupported { .. } => Some("version"),
            Self::Unreadable { .. }
            | Self::Missing { .. }
            | Self::Syntax { .. }
            | Self::NoPlace { .. }
            | Self::Unwritable { .. } => None,
        }
    }

    fn hint(&self) -> String {
        match self {
            Self::Unreadable { .. } => {
                "check that it is a text file and that you have permission to read it".to_owned()
            }
            Self::Missing { .. } => "correct or unset PALYRA_CONFIG, or create the file".to_owned(),
            Self::Syntax { .. } => "fix that line; `palyra config validate` checks the file again".to_owned(),
            Self::VersionUnsupported { .. } => "write `version = 1`, or use the build that wrote this file".to_owned(),
            Self::UnknownKey { .. } => "run `palyra config list` to see every key".to_owned(),
            Self::WrongType { key, .. } | Self::InvalidValue { key, .. } | Self::Inconsistent { key, .. } => {
                format!("run `palyra config explain {key}` to see which values it accepts")
            }
            Self::EnvNotAllowed { variable, .. } => format!("unset {variable}"),
            Self::PublicBind { .. } => {
                "bind 127.0.0.1 and reach it through an SSH tunnel or a reverse proxy on this machine".to_owned()
            }
            Self::NoPlace { .. } => "set HOME, or PALYRA_STATE_ROOT and PALYRA_CONFIG".to_owned(),
            Self::Unwritable { .. } => "check the directory's permissions and free space".to_owned(),
        }
    }
}

/// Everything that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    first: Box<ConfigProblem>,
    others: Vec<ConfigProblem>,
}

impl ConfigError {
    /// The first problem.
    #[must_use]
    pub fn first(&self) -> &ConfigProblem {
        &self.first
    }

    /// All problems, the first one first.
    pub fn problems(&self) -> impl Iterator<Item = &ConfigProblem> {
        std::iter::once(&*self.first).chain(&self.others)
    }

    /// The error made of these problems, if there are any.
    pub(super) fn from_problems(problems: Vec<ConfigProblem>) -> Result<(), Self> {
        let mut problems = problems.into_iter();
        match problems.next() {
            None => Ok(()),
            Some(first) => Err(Self { first: Box::new(first), others: problems.collect() }),
        }
    }
}

impl From<ConfigProblem> for ConfigError {
    fn from(problem: ConfigProblem) -> Self {
        Self { first: Box::new(problem), others: Vec::new() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        match self.others.len() {
            0 => Ok(()),
            1 => f.write_str(" (and 1 more problem)"),
            more => write!(f, " (and {more} more problems)"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl ToStableError for ConfigError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let category = match &*self.first {
            ConfigProblem::Unwritable { .. } => ErrorCategory::Conflict,
            _ => ErrorCategory::Validation,
        };
        let mut envelope =
            StableErrorEnvelope::new(self.first.code(), category, self.to_string()).hint(self.first.hint());
        envelope.validation_errors = self
            .problems()
            .filter_map(|problem| {
                Some(FieldError {
                    field: problem.key()?.to_owned(),
                    code: problem.code().to_owned(),
                    message: problem.to_string(),
                })
            })
            .collect();
        envelope
    }
}
