//! Who was turned away, counted by reason.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use palyra_common::StableErrorEnvelope;
use palyra_telemetry::{AuthFailure, Metrics, RateLimit};

/// What the caller of a request showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Credential {
    Shown,
    Missing,
}

impl Credential {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        if headers.contains_key(AUTHORIZATION) { Self::Shown } else { Self::Missing }
    }
}

/// Counts a refusal.
pub(super) fn refusal(metrics: &Metrics, credential: Credential, refusal: &StableErrorEnvelope) {
    let reason = match refusal.code.as_str() {
        "login_throttled" => return metrics.rate_limited(RateLimit::Login),
        "token_refused" | "credential_invalid" => match credential {
            Credential::Shown => AuthFailure::Unknown,
            Credential::Missing => AuthFailure::Missing,
        },
        "credential_expired" => AuthFailure::Expired,
        "credential_revoked" => AuthFailure::Revoked,
        "certificate_refused" => AuthFailure::Certificate,
        "origin_refused" => AuthFailure::Origin,
        "host_refused" => AuthFailure::Host,
        "csrf_refused" => AuthFailure::Csrf,
        "peer_refused" => AuthFailure::Peer,
        // A scope that is missing, a token that cannot be read.
        _ => AuthFailure::Malformed,
    };
    metrics.auth_failed(reason);
}
