//! The one place where an error becomes an HTTP answer: the category decides the status, the envelope is the body.

use axum::Json;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};
use palyra_client::api::ErrorResponse;
use palyra_common::{ErrorCategory, FieldError, StableErrorEnvelope, ToStableError};

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
        Self { status: status_of(envelope.category), envelope: Box::new(envelope) }
    }

    /// The same with a status that says more than the category does.
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// A request that is wrong in one field.
    pub(crate) fn field(field: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let mut envelope =
            StableErrorEnvelope::new("request_invalid", ErrorCategory::Validation, format!("`{field}`: {message}"))
                .hint("correct the named field; nothing was done");
        envelope.validation_errors.push(FieldError { field: field.to_owned(), code: "invalid".to_owned(), message });
        Self::new(envelope)
    }

    /// A defect.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StableErrorEnvelope::new("internal", ErrorCategory::Internal, message))
    }

    /// The daemon is about to end.
    pub(crate) fn stopping() -> Self {
        let message = "the daemon is stopping";
        Self::new(
            StableErrorEnvelope::new("daemon_stopping", ErrorCategory::Availability, message)
                .hint("try again when it has restarted"),
        )
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

fn status_of(category: ErrorCategory) -> StatusCode {
    match category {
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

impl<E: ToStableError> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self::new(error.to_stable())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log();
        let mut response = (self.status, Json(ErrorResponse { error: *self.envelope })).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
