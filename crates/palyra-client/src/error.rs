//! Everything that can go wrong between a caller and the daemon.
//!
//! A refusal by the daemon keeps its own envelope, code and all; the other variants are the client's: nobody answers, the
//! answer makes no sense, the connection broke. Those that mean "no daemon to talk to" share the category `availability`, so
//! that a command ends with the exit code for connectivity.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use palyra_common::{ErrorCategory, RunId, StableErrorEnvelope, ToStableError};
use thiserror::Error;

/// A call to the daemon that failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("no daemon answers at {endpoint}")]
    Unreachable {
        /// Where it was looked for.
        endpoint: String,
        /// What the system said.
        source: io::Error,
    },
    /// The socket belongs to somebody else's process.
    #[error("the daemon at {endpoint} runs as user {uid}, not as you")]
    ForeignDaemon {
        /// Where it listens.
        endpoint: String,
        /// Whose it is.
        uid: u32,
    },
    /// The token for loopback HTTP cannot be read.
    #[error("cannot read the token file `{path}`: {source}")]
    TokenUnreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The token file can be read by others, so it proves nothing.
    #[error("the token file `{path}` can be read by other users (mode {mode:o})")]
    TokenExposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// An address that is neither `http://LOOPBACK:PORT` nor `https://HOST[:PORT]`.
    #[error("`{value}` is not an address of a daemon; expected http://127.0.0.1:PORT or https://HOST[:PORT]")]
    InvalidAddress {
        /// What was given.
        value: String,
    },
    /// The connection broke before the answer was complete.
    #[error("lost the connection to the daemon while {doing}")]
    Disconnected {
        /// What was going on.
        doing: &'static str,
        /// What the transport said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No answer came in time.
    #[error("the daemon did not answer within {} s while {doing}", after.as_secs())]
    TimedOut {
        /// What was going on.
        doing: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The answer is not what the contract says.
    #[error("invalid answer from the daemon ({doing}): {message}")]
    Malformed {
        /// What was going on.
        doing: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// The two sides do not accept each other's certificates or protocol.
    #[error("the daemon at {endpoint} and this client could not authenticate each other: {reason}")]
    CertificateRefused {
        /// Where it listens.
        endpoint: String,
        /// What was said about it.
        reason: String,
    },
    /// The other side could not prove that it is who was asked for. Nothing was sent to it.
    #[error("the certificate of the daemon at {endpoint} was not accepted: {reason}")]
    Untrusted {
        /// Where it listens.
        endpoint: String,
        /// What was wrong.
        reason: String,
    },
    /// The certificates to be trusted cannot be read.
    #[error("cannot trust `{place}`: {reason}")]
    TrustUnusable {
        /// Where they were looked for.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The files that identify this client cannot be used.
    #[error(transparent)]
    Identity(#[from] palyra_identity::IdentityError),
    /// A run's tape did not go on where it should have.
    #[error("the events of run {run_id} skip from position {expected} to {found}")]
    TapeGap {
        /// The run.
        run_id: RunId,
        /// The position that should have come.
        expected: u64,
        /// The one that came.
        found: u64,
    },
    /// The daemon refused, and said why.
    #[error("{}", .0.message)]
    Refused(Box<StableErrorEnvelope>),
}

impl ClientError {
    /// Whether the connection rather than the request was at fault, so that the same request may be sent again.
    #[must_use]
    pub fn is_connection_trouble(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Disconnected { .. } | Self::TimedOut { .. })
    }

    /// Whether no daemon runs, as far as can be told.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

impl ToStableError for ClientError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::Refused(envelope) => (**envelope).clone(),
            Self::Unreachable { .. } => {
                StableErrorEnvelope::new("daemon_unreachable", ErrorCategory::Availability, message)
                    .hint("start it with `palyra daemon start`, or see `palyra daemon logs`")
            }
            Self::ForeignDaemon { .. } => StableErrorEnvelope::new("daemon_foreign", ErrorCategory::Auth, message)
                .hint("set PALYRA_STATE_ROOT to a directory of your own"),
            Self::TokenUnreadable { .. } => {
                StableErrorEnvelope::new("local_token_unreadable", ErrorCategory::Auth, message)
                    .hint("run as the user who started the daemon, or check PALYRA_STATE_ROOT")
            }
            Self::TokenExposed { path, .. } => {
                StableErrorEnvelope::new("local_token_exposed", ErrorCategory::Auth, message)
                    .hint(format!("remove `{}` and restart the daemon, which creates a new one", path.display()))
            }
            Self::InvalidAddress { .. } => {
                StableErrorEnvelope::new("daemon_address_invalid", ErrorCategory::Validation, message)
                    .hint("omit the address to use the socket in the state root")
            }
            Self::Disconnected { .. } => {
                StableErrorEnvelope::new("daemon_disconnected", ErrorCategory::Availability, message)
                    .hint("accepted work is not lost; see `palyra daemon status` and `palyra runs list`")
            }
            Self::TimedOut { .. } => StableErrorEnvelope::new("daemon_timeout", ErrorCategory::Availability, message)
                .hint("see `palyra daemon status` and `palyra daemon logs`"),
            Self::Malformed { .. } => {
                StableErrorEnvelope::new("daemon_answer_malformed", ErrorCategory::Internal, message)
                    .hint("after an upgrade the old daemon may still be running: `palyra daemon stop`, then try again")
            }
            Self::CertificateRefused { .. } => StableErrorEnvelope::new(
                "certificate_refused",
                ErrorCategory::Auth,
                message,
            )
            .hint("use the certificate in `identity/local` of the daemon's state root, or one that this daemon issued"),
            Self::Untrusted { .. } => StableErrorEnvelope::new("daemon_untrusted", ErrorCategory::Auth, message)
                .hint("pass the daemon's certificate authority with `--ca-file` (`identity/ca.pem` in its state root), and use a host name from its certificate"),
            Self::TrustUnusable { .. } => StableErrorEnvelope::new("trust_unusable", ErrorCategory::Validation, message)
                .hint("use a file with PEM certificates"),
            Self::Identity(error) => error.to_stable(),
            Self::TapeGap { .. } => StableErrorEnvelope::new("tape_gap", ErrorCategory::Internal, message)
                .hint("check the journal with `palyra journal verify`"),
        }
    }
}
