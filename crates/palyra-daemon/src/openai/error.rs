//! The one place where a refusal becomes OpenAI's error: `{"error": {"message", "type", "param", "code"}}` with its status.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use palyra_common::{ErrorCategory, StableErrorEnvelope};
use serde_json::{Value, json};

use crate::dispatch::Refusal;
use crate::http::ApiError;

/// Tells OpenAI's own clients whether to send the same request again by themselves.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Whether the same request may be sent again without anybody looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// As the envelope says.
    IfItMayHelp,
    /// A run has begun: the same request would begin another.
    Never,
}

/// A refused or failed request of this interface.
#[derive(Debug)]
pub(super) struct OpenAiError {
    envelope: Box<StableErrorEnvelope>,
    again: Again,
}

/// What handlers return.
pub(super) type OpenAiResult<T> = Result<T, OpenAiError>;

impl OpenAiError {
    /// A failure of a request whose run has begun.
    pub(super) fn of_a_run(refusal: Refusal) -> Self {
        Self { envelope: Box::new(refusal.into_envelope()), again: Again::Never }
    }

    /// The document, also for streams whose status is long sent.
    pub(super) fn document(&self) -> Value {
        let param = self.envelope.validation_errors.first().map(|error| as_the_client_says(&error.field));
        let kind = kind_of(status_of(&self.envelope));
        json!({ "error": { "message": self.message(), "type": kind, "param": param, "code": self.envelope.code } })
    }

    /// What happened and what helps, in one line.
    pub(super) fn message(&self) -> String {
        match &self.envelope.recovery_hint {
            Some(hint) => format!("{}; {hint}", self.envelope.message),
            None => self.envelope.message.clone(),
        }
    }

    fn log(&self) {
        if status_of(&self.envelope) == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(code = self.envelope.code, message = self.envelope.message, "a request failed");
        }
    }
}

/// Parameters of our commands under the names that clients of this interface know.
fn as_the_client_says(field: &str) -> &str {
    match field {
        "workspace" => "metadata.workspace",
        "client_tools" => "tools",
        "prompt" => "messages",
        other => other,
    }
}

fn status_of(envelope: &StableErrorEnvelope) -> StatusCode {
    match envelope.code.as_str() {
        "body_too_large" => return StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_slow" => return StatusCode::REQUEST_TIMEOUT,
        "encoding_unsupported" => return StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "method_not_allowed" => return StatusCode::METHOD_NOT_ALLOWED,
        "rate_limited" | "login_throttled" => return StatusCode::TOO_MANY_REQUESTS,
        "embeddings_unavailable" => return StatusCode::NOT_IMPLEMENTED,
        // The key of the provider is meant, which is none of the client's business.
        "model_auth_failed" | "model_permission_denied" => return StatusCode::BAD_GATEWAY,
        _ => {}
    }
    match envelope.category {
        ErrorCategory::Auth => StatusCode::UNAUTHORIZED,
        ErrorCategory::Validation => StatusCode::BAD_REQUEST,
        ErrorCategory::Policy => StatusCode::FORBIDDEN,
        ErrorCategory::NotFound => StatusCode::NOT_FOUND,
        ErrorCategory::Conflict => StatusCode::CONFLICT,
        ErrorCategory::Dependency => StatusCode::BAD_GATEWAY,
        ErrorCategory::Availability => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCategory::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn kind_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}

impl From<StableErrorEnvelope> for OpenAiError {
    fn from(envelope: StableErrorEnvelope) -> Self {
        Self { envelope: Box::new(envelope), again: Again::IfItMayHelp }
    }
}

impl From<Refusal> for OpenAiError {
    fn from(refusal: Refusal) -> Self {
        refusal.into_envelope().into()
    }
}

impl From<ApiError> for OpenAiError {
    fn from(error: ApiError) -> Self {
        error.into_envelope().into()
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        self.log();
        let status = status_of(&self.envelope);
        let mut response = (status, Json(self.document())).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let wait = self.envelope.details.as_ref().and_then(|details| details.get("retry_after_ms")?.as_u64());
        if let Some(millis) = wait {
            headers.insert(RETRY_AFTER, HeaderValue::from(millis.div_ceil(1000)));
        }
        let again = self.again == Again::IfItMayHelp && self.envelope.retryable;
        headers.insert(SHOULD_RETRY, HeaderValue::from_static(if again { "true" } else { "false" }));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_openais_four_fields_and_nothing_else() {
        let error = OpenAiError::from(Refusal::field("workspace", "`x` is not an absolute path"));
        let document = error.document();
        let fields: Vec<_> = document["error"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields.len(), 4, "{fields:?}");
        assert_eq!(document["error"]["param"], "metadata.workspace");
        assert_eq!(document["error"]["type"], "invalid_request_error");
        assert_eq!(document["error"]["code"], "request_invalid");
        assert_eq!(error.into_response().status(), StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_request_whose_run_has_begun_is_not_sent_again() {
        let retry = |error: OpenAiError| error.into_response().headers().get(SHOULD_RETRY).cloned().unwrap();
        assert_eq!(retry(OpenAiError::from(Refusal::stopping())), "true");
        assert_eq!(retry(OpenAiError::of_a_run(Refusal::stopping())), "false");
        assert_eq!(retry(OpenAiError::from(Refusal::internal("x"))), "false");
    }
}
