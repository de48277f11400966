//! Why a caller is not let in.
//!
//! What is said tells a guesser nothing: a credential that does not exist and one whose secret is wrong are the same refusal, and
//! that a credential was revoked or is too old is said only to whoever holds its secret.

use std::time::Duration;

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};
use thiserror::Error;

/// Why a caller is not let in.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No such credential, or not its secret.
    #[error("the credential is not valid")]
    Unknown,
    /// The credential has run out.
    #[error("the credential has expired")]
    Expired,
    /// Somebody took the credential back.
    #[error("the credential was revoked")]
    Revoked,
    /// A certificate that this installation did not issue for this use.
    #[error("the certificate is refused: {reason}")]
    Certificate {
        /// What is wrong with it.
        reason: String,
    },
    /// A request of the console that does not carry the session's own proof.
    #[error("the request does not carry this session's CSRF token")]
    Csrf,
    /// A request that comes from another site.
    #[error("requests from `{origin}` are not accepted here")]
    Origin {
        /// Where it says it comes from.
        origin: String,
    },
    /// More requests than the principal is allowed.
    #[error("too many requests; try again in {} s", seconds(*wait))]
    TooManyRequests {
        /// How long until the next one is accepted.
        wait: Duration,
    },
    /// Too many failed attempts from one place.
    #[error("too many failed attempts; try again in {} s", seconds(*wait))]
    Throttled {
        /// How long until the next one is looked at.
        wait: Duration,
    },
}

impl Refusal {
    /// How long the caller should wait, if waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyRequests { wait } | Self::Throttled { wait } => Some(*wait),
            _ => None,
        }
    }
}

/// Whole seconds, rounded up, as `Retry-After` wants them.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

impl ToStableError for Refusal {
    fn to_stable(&self) -> StableErrorEnvelope {
        use ErrorCategory::{Auth, Availability};
        let (code, category, hint) = match self {
            Self::Unknown => ("credential_invalid", Auth, "log in again, or use a token from `palyra tokens list`"),
            Self::Expired => ("credential_expired", Auth, "log in again, or rotate the token"),
            Self::Revoked => ("credential_revoked", Auth, "ask the owner of this installation for another one"),
            Self::Certificate { .. } => {
                ("certificate_refused", Auth, "use a certificate that this installation issued and that is still valid")
            }
            Self::Csrf => ("csrf_refused", Auth, "reload the console"),
            Self::Origin { .. } => ("origin_refused", Auth, "open the console at the address the daemon shows"),
            Self::TooManyRequests { .. } => ("rate_limited", Availability, "wait as long as the message says"),
            Self::Throttled { .. } => ("login_throttled", Availability, "wait as long as the message says"),
        };
        let envelope = StableErrorEnvelope::new(code, category, self.to_string()).hint(hint);
        match self.retry_after() {
            Some(wait) => {
                let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                envelope.details(serde_json::json!({ "retry_after_ms": millis }))
            }
            None => envelope,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_rounded_up_and_given_to_programs() {
        let refusal = Refusal::TooManyRequests { wait: Duration::from_millis(1_001) };
        let stable = refusal.to_stable();
        assert_eq!(stable.message, "too many requests; try again in 2 s");
        assert_eq!(stable.details.unwrap()["retry_after_ms"], 1_001);
        assert!(stable.retryable);
        assert!(!Refusal::Unknown.to_stable().retryable);
    }
}
