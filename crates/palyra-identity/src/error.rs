//! What can go wrong while credentials are made and kept, and how it looks to the outside. Why a caller is refused stands in
//! `refusal.rs`.

use std::io;
use std::path::PathBuf;

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError, TokenScope};
use thiserror::Error;

/// A failure of identities.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A text that names no principal.
    #[error("`{given}` names no principal; expected `uid:…`, `user:…` or `device:…`")]
    PrincipalInvalid {
        /// What was given.
        given: String,
    },
    /// A token that cannot be made as it was asked for.
    #[error("the token cannot be made: {reason}")]
    TokenRequest {
        /// What is wrong.
        reason: String,
    },
    /// A token with more than its role reaches.
    #[error("the scope `{scope}` is beyond the token's role")]
    ScopeBeyondRole {
        /// The scope.
        scope: TokenScope,
    },
    /// No such token.
    #[error("there is no token `{id}`")]
    TokenNotFound {
        /// What was given.
        id: String,
    },
    /// No such device, or all its certificates have run out.
    #[error("there is no device `{id}` with a certificate that has not run out")]
    DeviceNotFound {
        /// What was given.
        id: String,
    },
    /// The token was revoked and stays so.
    #[error("the token `{id}` was revoked")]
    TokenRevoked {
        /// The token.
        id: String,
    },
    /// There are as many tokens as there may be.
    #[error("there are already {limit} live tokens")]
    TooManyTokens {
        /// How many there may be.
        limit: usize,
    },
    /// The recorded history of tokens contradicts itself.
    #[error("the history of tokens cannot be true: {reason}")]
    TokenHistory {
        /// What is wrong.
        reason: String,
    },
    /// A key or a file with it that others can reach.
    #[error("`{path}` is not private: {reason}", path = path.display())]
    Exposed {
        /// What is exposed.
        path: PathBuf,
        /// In which way.
        reason: String,
    },
    /// A file of identities that cannot be read or written.
    #[error("cannot {doing} `{path}`: {source}", path = path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file of identities that holds something else than it should.
    #[error("`{path}` cannot be used: {reason}", path = path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A name that no certificate can carry, or a life that none may have.
    #[error("no certificate can be issued: {reason}")]
    CertificateRequest {
        /// What is wrong.
        reason: String,
    },
    /// A text that is no serial number.
    #[error("`{given}` is not the serial number of a certificate")]
    SerialInvalid {
        /// What was given.
        given: String,
    },
    /// TLS could not be set up.
    #[error("TLS cannot be set up: {reason}")]
    Tls {
        /// Why.
        reason: String,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gives no random bytes: {reason}")]
    NoRandomness {
        /// Why.
        reason: String,
    },
}

impl IdentityError {
    #[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
    pub(crate) fn tls(reason: impl ToString) -> Self {
        Self::Tls { reason: reason.to_string() }
    }

    pub(crate) fn token_request(reason: impl Into<String>) -> Self {
        Self::TokenRequest { reason: reason.into() }
    }

    pub(crate) fn token_history(reason: impl Into<String>) -> Self {
        Self::TokenHistory { reason: reason.into() }
    }
}

impl ToStableError for IdentityError {
    fn to_stable(&self) -> StableErrorEnvelope {
        use ErrorCategory::{Availability, Conflict, Internal, NotFound, Validation};
        let (code, category, hint) = match self {
            Self::PrincipalInvalid { .. } => {
                ("principal_invalid", Validation, "write `uid:` and a number, or `user:` and a name")
            }
            Self::TokenRequest { .. } => ("token_request_invalid", Validation, "correct what the message names"),
            Self::ScopeBeyondRole { .. } => {
                ("token_scope_excessive", Validation, "leave the scope out, or choose a role that reaches it")
            }
            Self::TokenNotFound { .. } => ("token_not_found", NotFound, "copy the id from `palyra tokens list`"),
            Self::DeviceNotFound { .. } => ("device_not_found", NotFound, "copy the id from `palyra devices list`"),
            Self::TokenRevoked { .. } => ("token_revoked", Conflict, "create another token"),
            Self::TooManyTokens { .. } => ("token_limit_reached", Conflict, "revoke tokens that nobody uses"),
            Self::TokenHistory { .. } => {
                ("token_history_invalid", Internal, "verify the journal; no token is accepted meanwhile")
            }
            Self::Exposed { .. } => (
                "identity_exposed",
                Validation,
                "give it to the daemon's user alone (0600, directories 0700), and replace keys that others could read",
            ),
            Self::File { .. } => ("identity_file_failed", Availability, "check the path, its permissions and the disk"),
            Self::Unusable { .. } => (
                "identity_file_unusable",
                Validation,
                "restore the file, or move the whole directory away to start with new certificates",
            ),
            Self::CertificateRequest { .. } => {
                ("certificate_request_invalid", Validation, "correct what the message names")
            }
            Self::SerialInvalid { .. } => ("serial_invalid", Validation, "copy the serial number as it was shown"),
            Self::Tls { .. } => ("tls_setup_failed", Internal, "report this; nothing is served over TLS meanwhile"),
            Self::NoRandomness { .. } => ("randomness_unavailable", Availability, "check the operating system"),
        };
        StableErrorEnvelope::new(code, category, self.to_string()).hint(hint)
    }
}
