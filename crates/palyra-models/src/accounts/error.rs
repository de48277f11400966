//! What can be wrong with accounts and routes.

use std::path::PathBuf;

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError, did_you_mean, suggest};
use thiserror::Error;

use super::Accounts;

/// `models.toml` cannot be used, or does not have what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AccountsError {
    /// The file cannot be read or written.
    #[error("cannot {doing} `{}`: {reason}", path.display())]
    File {
        /// `read` or `write`.
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file says something that cannot be meant.
    #[error("{}:{line}: {reason}", path.display())]
    Invalid {
        /// Which file.
        path: PathBuf,
        /// In which line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// No account has this name.
    #[error("no provider `{name}` is configured{}", did_you_mean(suggestion.as_deref()))]
    UnknownProvider {
        /// What was given.
        name: String,
        /// What was most likely meant.
        suggestion: Option<String>,
    },
    /// An account has this name already.
    #[error("`models.toml` has a provider `{name}` already")]
    ProviderExists {
        /// What was given.
        name: String,
    },
    /// What was given cannot stand in the file.
    #[error("`{given}` cannot be used: {reason}")]
    Argument {
        /// What was given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl AccountsError {
    /// There is no account of this name; one that is named like it is suggested.
    #[must_use]
    pub fn unknown(name: &str, accounts: &Accounts) -> Self {
        let suggestion = suggest(name, accounts.providers.keys().map(String::as_str));
        Self::UnknownProvider { name: name.to_owned(), suggestion }
    }
}

impl ToStableError for AccountsError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::File { .. } => StableErrorEnvelope::new("models_file_unusable", ErrorCategory::Validation, message)
                .hint("check the path, its permissions and the free space"),
            Self::Invalid { .. } => StableErrorEnvelope::new("models_file_invalid", ErrorCategory::Validation, message)
                .hint("fix the line; docs/models.md shows the whole form of models.toml"),
            Self::UnknownProvider { .. } => {
                StableErrorEnvelope::new("model_provider_not_found", ErrorCategory::NotFound, message)
                    .hint("see `palyra models list` and `palyra models discover`")
            }
            Self::ProviderExists { .. } => {
                StableErrorEnvelope::new("model_provider_exists", ErrorCategory::Conflict, message)
                    .hint("choose another name, or edit models.toml")
            }
            Self::Argument { .. } => StableErrorEnvelope::new("model_name_invalid", ErrorCategory::Validation, message)
                .hint("write PROVIDER/MODEL; `palyra models list` shows the providers"),
        }
    }
}
