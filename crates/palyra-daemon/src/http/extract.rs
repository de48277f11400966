//! Reading what requests carry: the ids of their addresses, and their bodies up to a limit.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use palyra_common::{ErrorCategory, StableErrorEnvelope};

use super::error::{ApiError, ApiResult};

/// Largest body that is read. A task with everything a person may paste into it stays below; a larger one only eats memory.
pub(crate) const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// How long a body may take. It is at most a few megabytes.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// What stands for the id of an address whose bytes are no text. Nothing has it, so whoever reads ids refuses it in its own words.
const NO_TEXT: &str = "\u{fffd}";

/// The one id of an address, if it has any.
pub(crate) struct PathId(Option<String>);

impl PathId {
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let id = match RawPathParams::from_request_parts(parts, state).await {
            Ok(params) => params.iter().next().map(|(_, value)| value.to_owned()),
            Err(_) => Some(NO_TEXT.to_owned()),
        };
        Ok(Self(id))
    }
}

/// A whole body.
pub(crate) struct Body(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> ApiResult<Self> {
        check_not_encoded(request.headers())?;
        let read = tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, state));
        let bytes =
            read.await.map_err(|_| ApiError::new(body_too_slow(BODY_TIMEOUT)))?.map_err(|rejection| match rejection
                .status()
            {
                StatusCode::PAYLOAD_TOO_LARGE => too_large(),
                status => ApiError::field("body", rejection.body_text()).with_status(status),
            })?;
        Ok(Self(bytes))
    }
}

fn too_large() -> ApiError {
    let hint = format!(
        "a command has at most {} MiB; put large content into a workspace file and refer to it with `@file:`",
        MAX_BODY_BYTES / (1024 * 1024)
    );
    let message = "the body is larger than this address accepts";
    ApiError::new(StableErrorEnvelope::new("body_too_large", ErrorCategory::Validation, message).hint(hint))
}

/// A body that nobody waits for any longer.
pub(super) fn body_too_slow(within: Duration) -> StableErrorEnvelope {
    let message = format!("the body did not arrive within {} s", within.as_secs());
    StableErrorEnvelope::new("body_too_slow", ErrorCategory::Availability, message)
        .hint("send it again over a better connection")
}

/// Nothing is ever unpacked: a small body cannot become a large one.
pub(super) fn check_not_encoded(headers: &HeaderMap) -> ApiResult<()> {
    if headers.get(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity") {
        return Ok(());
    }
    let message = "bodies with a `Content-Encoding` are not supported";
    Err(ApiError::new(
        StableErrorEnvelope::new("encoding_unsupported", ErrorCategory::Validation, message)
            .hint("send the body unencoded"),
    ))
}
