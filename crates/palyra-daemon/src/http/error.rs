//! The one place where an error becomes an HTTP answer: the category decides the status, the envelope is the body.

use axum::Json;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use palyra_client::api::ErrorResponse;
use palyra_common::{ErrorCategory, StableErrorEnvelope};

use crate::dispatch::Refusal;

/// A refused or failed request.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    envelope: Box<StableErrorEnvelope>,
}

/// What handlers return.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// The answer to an envelope.
    pub(crate) fn new(envelope: StableErrorEnvelope) -> Self {
        Self { status: status_of(&envelope), envelope: Box::new(envelope) }
    }

    /// The same with a status that says more than the category does.
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// A request that is wrong in one field.
    pub(crate) fn field(field: &str, message: impl Into<String>) -> Self {
        Refusal::field(field, message).into()
    }

    /// A defect.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Refusal::internal(message).into()
    }

    /// The daemon is about to end.
    pub(crate) fn stopping() -> Self {
        Refusal::stopping().into()
    }

    /// What it says, for an interface with errors of its own.
    pub(crate) fn into_envelope(self) -> StableErrorEnvelope {
        *self.envelope
    }

    /// The error as the last line of a stream whose status is long sent.
    pub(crate) fn into_line(self) -> Bytes {
        self.log();
        let mut line = serde_json::to_vec(&ErrorResponse { error: *self.envelope }).unwrap_or_default();
        line.push(b'\n');
        line.into()
    }

    fn log(&self) {
        if self.status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(code = self.envelope.code, message = self.envelope.message, "a request failed");
        }
    }
}

/// The status of an answer: by its category, and by its code where HTTP has a word of its own for it.
pub(super) fn status_of(envelope: &StableErrorEnvelope) -> StatusCode {
    match envelope.code.as_str() {
        "body_malformed" => return StatusCode::BAD_REQUEST,
        "body_too_large" => return StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_slow" => return StatusCode::REQUEST_TIMEOUT,
        "encoding_unsupported" => return StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "method_not_allowed" => return StatusCode::METHOD_NOT_ALLOWED,
        "csrf_refused" | "origin_refused" => return StatusCode::FORBIDDEN,
        "rate_limited" | "login_throttled" => return StatusCode::TOO_MANY_REQUESTS,
        "command_not_available" => return StatusCode::NOT_IMPLEMENTED,
        _ => {}
    }
    match envelope.category {
        ErrorCategory::Auth => StatusCode::UNAUTHORIZED,
        ErrorCategory::Validation => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCategory::Policy => StatusCode::FORBIDDEN,
        ErrorCategory::NotFound => StatusCode::NOT_FOUND,
        ErrorCategory::Conflict => StatusCode::CONFLICT,
        ErrorCategory::Dependency => StatusCode::BAD_GATEWAY,
        ErrorCategory::Availability => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCategory::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.into_envelope())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log();
        let wait = self.envelope.details.as_ref().and_then(|details| details.get("retry_after_ms")?.as_u64());
        let retry_after = wait.map(|millis| millis.div_ceil(1000));
        let mut response = (self.status, Json(ErrorResponse { error: *self.envelope })).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
