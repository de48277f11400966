//! Errors as gRPC statuses, in both directions. The only place where a category becomes a code.
//!
//! A status carries the message as text, `google.rpc.ErrorInfo` and, for wrong fields, `google.rpc.BadRequest` for clients
//! that know nothing of Palyra, and the whole envelope for those that do. `google.rpc.RetryInfo` says when to come back.
//!
//! A status travels in trailers, and common clients refuse more than 8 KiB of them: the caller would then see a broken
//! connection instead of the reason. So what does not fit is left out, the least important first, and `ErrorInfo` says so.

use std::collections::HashMap;

use bytes::Bytes;
use palyra_common::{ErrorCategory, Retry, StableErrorEnvelope};
use prost::Message;
use prost_types::Any;
use tonic::{Code, Status};
use tonic_types::pb;

use crate::common::v1 as wire;

/// The domain of our reasons in `google.rpc.ErrorInfo`.
pub const ERROR_DOMAIN: &str = "palyra";

/// The name that the envelope's `Any` ends with.
const ENVELOPE_TYPE: &str = "palyra.common.v1.StableErrorEnvelope";

/// Details in bytes. In base64 they grow by a third, so together with the message they stay under 8 KiB.
const DETAILS_LIMIT: usize = 4 << 10;

/// The message in bytes. Whatever is not plain ASCII triples on the way.
const MESSAGE_LIMIT: usize = 512;

/// The envelope's own texts, when the whole is too large even without details.
const TEXT_LIMIT: usize = 768;

/// The code that an error has on the wire: by its category, and by its own code where gRPC has a word for exactly that.
#[must_use]
pub fn code_for(error: &StableErrorEnvelope) -> Code {
    match error.code.as_str() {
        "rate_limited" | "login_throttled" | "body_too_large" => return Code::ResourceExhausted,
        "deadline_exceeded" => return Code::DeadlineExceeded,
        "version_conflict" | "canvas_version_conflict" => return Code::Aborted,
        "command_not_available" => return Code::Unimplemented,
        code if code.starts_with("unsupported") => return Code::Unimplemented,
        _ => {}
    }
    match error.category {
        ErrorCategory::Auth => Code::Unauthenticated,
        ErrorCategory::Validation => Code::InvalidArgument,
        ErrorCategory::Policy => Code::PermissionDenied,
        ErrorCategory::NotFound => Code::NotFound,
        ErrorCategory::Conflict => Code::FailedPrecondition,
        // Generic clients try again by themselves after `UNAVAILABLE`, and not after `FAILED_PRECONDITION`.
        ErrorCategory::Dependency | ErrorCategory::Availability if error.retryable => Code::Unavailable,
        ErrorCategory::Dependency | ErrorCategory::Availability => Code::FailedPrecondition,
        ErrorCategory::Internal => Code::Internal,
    }
}

/// The status that tells a caller about an error.
#[must_use]
pub fn status_from_error(error: &StableErrorEnvelope) -> Status {
    let code = code_for(error);
    let message = shortened(&error.message, MESSAGE_LIMIT);
    let (envelope, left_out) = fitted(error);
    let mut details = vec![any("google.rpc.ErrorInfo", &error_info(error, left_out))];
    let bad_request = bad_request(&envelope);
    details.push(any(ENVELOPE_TYPE, &envelope));
    details.extend(retry_info(error).map(|info| any("google.rpc.RetryInfo", &info)));
    let mut status = pb::Status { code: code.into(), message: message.clone(), details };
    if let Some(bad_request) = bad_request {
        status.details.push(any("google.rpc.BadRequest", &bad_request));
        if status.encoded_len() > DETAILS_LIMIT {
            status.details.pop();
        }
    }
    Status::with_details(code, message, Bytes::from(status.encode_to_vec()))
}

/// The error that a status tells of: the envelope it carries, or what can be said from its code alone.
#[must_use]
pub fn error_from_status(status: &Status) -> StableErrorEnvelope {
    carried(status.details()).unwrap_or_else(|| foreign(status))
}

/// The envelope in the details, if they are there and can be read.
fn carried(details: &[u8]) -> Option<StableErrorEnvelope> {
    let status = pb::Status::decode(details).ok()?;
    let any = status.details.iter().find(|any| any.type_url.rsplit('/').next() == Some(ENVELOPE_TYPE))?;
    wire::StableErrorEnvelope::decode(any.value.as_slice()).ok()?.try_into().ok()
}

/// What can be said of a status that no daemon of ours made: a proxy's, a library's, or that of another service.
fn foreign(status: &Status) -> StableErrorEnvelope {
    let message = format!("the call ended with status {:?}: `{}`", status.code(), status.message());
    let category = match status.code() {
        Code::Unauthenticated => ErrorCategory::Auth,
        Code::PermissionDenied => ErrorCategory::Policy,
        Code::InvalidArgument | Code::OutOfRange => ErrorCategory::Validation,
        Code::NotFound => ErrorCategory::NotFound,
        Code::AlreadyExists | Code::FailedPrecondition | Code::Aborted => ErrorCategory::Conflict,
        Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded | Code::Cancelled => {
            ErrorCategory::Availability
        }
        Code::Unimplemented => {
            return StableErrorEnvelope::new("unsupported_rpc", ErrorCategory::Availability, message)
                .retryable(Retry::Pointless)
                .hint("check that client and daemon have the same version");
        }
        Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => ErrorCategory::Internal,
    };
    StableErrorEnvelope::new("rpc_failed", category, message)
        .hint("check that the address belongs to a Palyra daemon; its log may have details")
}

/// Whether something had to be left out of an envelope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeftOut {
    Nothing,
    Something,
}

/// The envelope as a message that is small enough for trailers.
fn fitted(error: &StableErrorEnvelope) -> (wire::StableErrorEnvelope, LeftOut) {
    // Room for ErrorInfo, the status's own message and the type names.
    const ROOM: usize = DETAILS_LIMIT - MESSAGE_LIMIT - 512;
    let mut envelope = wire::StableErrorEnvelope::from(error.clone());
    if envelope.encoded_len() <= ROOM {
        return (envelope, LeftOut::Nothing);
    }
    envelope.details_json = None;
    if envelope.encoded_len() > ROOM {
        envelope.message = shortened(&envelope.message, TEXT_LIMIT);
        envelope.recovery_hint = envelope.recovery_hint.map(|hint| shortened(&hint, TEXT_LIMIT));
        envelope.code = shortened(&envelope.code, TEXT_LIMIT);
    }
    while envelope.encoded_len() > ROOM && envelope.validation_errors.pop().is_some() {}
    (envelope, LeftOut::Something)
}

fn error_info(error: &StableErrorEnvelope, left_out: LeftOut) -> pb::ErrorInfo {
    let mut metadata = HashMap::from([
        ("category".to_owned(), error.category.as_str().to_owned()),
        ("retryable".to_owned(), error.retryable.to_string()),
    ]);
    if left_out == LeftOut::Something {
        metadata.insert("truncated".to_owned(), "true".to_owned());
    }
    // The standard wants capitals and at most 63 characters.
    let reason = shortened(&error.code, 63).to_ascii_uppercase();
    pb::ErrorInfo { reason, domain: ERROR_DOMAIN.to_owned(), metadata }
}

/// When to come back, if the error says so.
fn retry_info(error: &StableErrorEnvelope) -> Option<pb::RetryInfo> {
    let millis = error.details.as_ref()?.get("retry_after_ms")?.as_u64()?;
    let delay = prost_types::Duration {
        seconds: i64::try_from(millis / 1000).ok()?,
        nanos: i32::try_from(millis % 1000 * 1_000_000).ok()?,
    };
    Some(pb::RetryInfo { retry_delay: Some(delay) })
}

fn bad_request(envelope: &wire::StableErrorEnvelope) -> Option<pb::BadRequest> {
    let violation = |error: &wire::FieldError| pb::bad_request::FieldViolation {
        field: error.field.clone(),
        description: error.message.clone(),
        reason: error.code.to_ascii_uppercase(),
        ..Default::default()
    };
    let field_violations: Vec<_> = envelope.validation_errors.iter().map(violation).collect();
    (!field_violations.is_empty()).then_some(pb::BadRequest { field_violations })
}

fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/{name}"), value: message.encode_to_vec() }
}

/// At most so many bytes of a text, cut between characters, with a mark where it was cut.
fn shortened(text: &str, limit: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit.saturating_sub(MARK.len()));
    format!("{}{MARK}", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
#[path = "rich_status_tests.rs"]
mod tests;
