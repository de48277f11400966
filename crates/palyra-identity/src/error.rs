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
    #[error("`{given}` is not a principal; expected `uid:…`, `user:…` or `device:…`")]
    PrincipalInvalid {
        /// What was given.
        given: String,
    },
    /// A token that cannot be made as it was asked for.
    #[error("cannot create the token: {reason}")]
    TokenRequest {
        /// What is wrong.
        reason: String,
    },
    /// A token with more than its role reaches.
    #[error("the scope `{scope}` exceeds the token's role")]
    ScopeBeyondRole {
        /// The scope.
        scope: TokenScope,
    },
    /// A credential that would be good for more than the one it is made with.
    #[error("a credential cannot hand on more than it has: {what}")]
    BeyondCredential {
        /// What is beyond it.
        what: String,
    },
    /// No such token.
    #[error("there is no token `{id}`")]
    TokenNotFound {
        /// What was given.
        id: String,
    },
    /// No such device, or all its certificates have run out.
    #[error("no device `{id}` with an unexpired certificate")]
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
    #[error("the limit of {limit} active tokens is reached")]
    TooManyTokens {
        /// How many there may be.
        limit: usize,
    },
    /// The recorded history of tokens contradicts itself.
    #[error("the token history is inconsistent: {reason}")]
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
    #[error("cannot issue a certificate: {reason}")]
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
    #[error("the operating system provides no random bytes: {reason}")]
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
        use ErrorCategory::{Availability, Conflict, Internal, NotFound, Policy, Validation};
        let (code, category, hint) = match self {
            Self::PrincipalInvalid { .. } => {
                ("principal_invalid", Validation, "write `uid:` and a number, or `user:` and a name")
            }
            Self::TokenRequest { .. } => ("token_request_invalid", Validation, "fix the problem named in the message"),
            Self::ScopeBeyondRole { .. } => {
                ("token_scope_excessive", Validation, "omit the scope, or choose a role that includes it")
            }
            Self::BeyondCredential { .. } => (
                "credential_exceeded",
                Policy,
                "ask for no more than your own credential has, or use one that has it; `palyra tokens create` at the machine itself is not bounded",
            ),
            Self::TokenNotFound { .. } => ("token_not_found", NotFound, "copy the id from `palyra tokens list`"),
            Self::DeviceNotFound { .. } => ("device_not_found", NotFound, "copy the id from `palyra devices list`"),
            Self::TokenRevoked { .. } => ("token_revoked", Conflict, "create another token"),
            Self::TooManyTokens { .. } => (
                "token_limit_reached",
                Conflict,
                "revoke tokens that are no longer used; `palyra tokens list` shows when each was last used",
            ),
            Self::TokenHistory { .. } => (
                "token_history_invalid",
                Internal,
                "run `palyra journal verify`; no token is accepted until this is resolved",
            ),
            Self::Exposed { .. } => (
                "identity_exposed",
                Validation,
                "make it accessible to the daemon's user only (0600, directories 0700), and replace keys that others could read",
            ),
            Self::File { .. } => {
                ("identity_file_failed", Availability, "check the path, its permissions and free disk space")
            }
            Self::Unusable { .. } => (
                "identity_file_unusable",
                Validation,
                "restore the file, or move the whole directory away to start with new certificates",
            ),
            Self::CertificateRequest { .. } => {
                ("certificate_request_invalid", Validation, "fix the problem named in the message")
            }
            Self::SerialInvalid { .. } => ("serial_invalid", Validation, "copy the serial number as it was shown"),
            Self::Tls { .. } => {
                ("tls_setup_failed", Internal, "please report this; TLS is unavailable until it is resolved")
            }
            Self::NoRandomness { .. } => {
                ("randomness_unavailable", Availability, "check that /dev/urandom is readable")
            }
        };
        StableErrorEnvelope::new(code, category, self.to_string()).hint(hint)
    }
}
