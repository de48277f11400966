use palyra_common::FieldError;
use serde_json::json;

use super::*;

/// What a careful client allows for all trailers together.
const TRAILERS: usize = 8 << 10;

/// The size of a status in trailers: text in percent encoding, details in base64.
fn trailer_size(status: &Status) -> usize {
    let message: usize = status.message().bytes().map(|byte| if byte.is_ascii_graphic() { 1 } else { 3 }).sum();
    message + status.details().len().div_ceil(3) * 4
}

fn info(status: &Status) -> pb::ErrorInfo {
    let details = pb::Status::decode(status.details()).unwrap().details;
    let any = details.iter().find(|any| any.type_url == "type.googleapis.com/google.rpc.ErrorInfo").unwrap();
    pb::ErrorInfo::decode(any.value.as_slice()).unwrap()
}

#[test]
fn every_category_has_its_code() {
    let table = [
        (ErrorCategory::Auth, Code::Unauthenticated),
        (ErrorCategory::Validation, Code::InvalidArgument),
        (ErrorCategory::Policy, Code::PermissionDenied),
        (ErrorCategory::NotFound, Code::NotFound),
        (ErrorCategory::Conflict, Code::FailedPrecondition),
        (ErrorCategory::Dependency, Code::FailedPrecondition),
        (ErrorCategory::Availability, Code::Unavailable),
        (ErrorCategory::Internal, Code::Internal),
    ];
    assert_eq!(table.len(), ErrorCategory::ALL.len());
    for (category, code) in table {
        assert_eq!(code_for(&StableErrorEnvelope::new("some_error", category, "text")), code, "{category}");
    }
    let dependency = StableErrorEnvelope::new("model_timeout", ErrorCategory::Dependency, "text");
    assert_eq!(code_for(&dependency.retryable(Retry::MayHelp)), Code::Unavailable);
    let stuck = StableErrorEnvelope::new("disk_full", ErrorCategory::Availability, "text").retryable(Retry::Pointless);
    assert_eq!(code_for(&stuck), Code::FailedPrecondition);
    let absent = StableErrorEnvelope::new("unsupported_command", ErrorCategory::Validation, "text");
    assert_eq!(code_for(&absent), Code::Unimplemented);
}

#[test]
fn some_errors_have_a_code_of_their_own() {
    let table = [
        ("rate_limited", ErrorCategory::Availability, Code::ResourceExhausted),
        ("body_too_large", ErrorCategory::Validation, Code::ResourceExhausted),
        ("deadline_exceeded", ErrorCategory::Availability, Code::DeadlineExceeded),
        ("version_conflict", ErrorCategory::Conflict, Code::Aborted),
        ("command_not_available", ErrorCategory::Availability, Code::Unimplemented),
    ];
    for (code, category, expected) in table {
        assert_eq!(code_for(&StableErrorEnvelope::new(code, category, "text")), expected, "{code}");
    }
}

#[test]
fn a_generic_client_learns_when_to_come_back() {
    let error = StableErrorEnvelope::new("rate_limited", ErrorCategory::Availability, "too many commands")
        .details(json!({ "retry_after_ms": 1_250 }));
    let details = pb::Status::decode(status_from_error(&error).details()).unwrap().details;
    let info = details.iter().find(|any| any.type_url.ends_with("google.rpc.RetryInfo")).unwrap();
    let delay = pb::RetryInfo::decode(info.value.as_slice()).unwrap().retry_delay.unwrap();
    assert_eq!((delay.seconds, delay.nanos), (1, 250_000_000));
}

#[test]
fn an_error_comes_back_whole() {
    let mut error = StableErrorEnvelope::new("run_not_found", ErrorCategory::NotFound, "there is no run `01J…`")
        .hint("look at `palyra runs list`")
        .details(json!({ "seen": 9_007_199_254_740_993_u64 }));
    error.validation_errors.push(FieldError { field: "run_id".into(), code: "unknown".into(), message: "no".into() });
    let status = status_from_error(&error);
    assert_eq!(error_from_status(&status), error);
    assert_eq!(status.message(), error.message);
    let info = info(&status);
    assert_eq!((info.reason.as_str(), info.domain.as_str()), ("RUN_NOT_FOUND", "palyra"));
    assert_eq!(info.metadata["category"], "not_found");
    assert!(!info.metadata.contains_key("truncated"));
    let details = pb::Status::decode(status.details()).unwrap().details;
    let bad = details.iter().find(|any| any.type_url.ends_with("google.rpc.BadRequest")).unwrap();
    let bad = pb::BadRequest::decode(bad.value.as_slice()).unwrap();
    assert_eq!(bad.field_violations[0].field, "run_id");
}

#[test]
fn a_large_error_still_fits_into_trailers() {
    let mut error = StableErrorEnvelope::new("config_invalid", ErrorCategory::Validation, "ž".repeat(100_000))
        .hint("ž".repeat(100_000))
        .details(json!({ "blob": "x".repeat(100_000) }));
    let field = FieldError { field: "f".repeat(100), code: "c".into(), message: "ž".repeat(100) };
    error.validation_errors = vec![field; 1000];
    let status = status_from_error(&error);
    assert!(trailer_size(&status) < TRAILERS, "{}", trailer_size(&status));
    assert_eq!(info(&status).metadata["truncated"], "true");
    let read = error_from_status(&status);
    assert_eq!((read.code.as_str(), read.category), ("config_invalid", ErrorCategory::Validation));
    assert!(read.message.ends_with('…') && read.details.is_none());
    assert!(!read.validation_errors.is_empty(), "as many wrong fields as fit are kept");
}

#[test]
fn a_foreign_status_keeps_what_its_code_says() {
    let read = error_from_status(&Status::unauthenticated("who are you"));
    assert_eq!((read.code.as_str(), read.category), ("rpc_failed", ErrorCategory::Auth));
    assert!(read.message.contains("`who are you`"));
    assert!(error_from_status(&Status::unavailable("gone")).retryable);
    assert!(!error_from_status(&Status::internal("broken")).retryable);
    let missing = error_from_status(&Status::unimplemented("what"));
    assert_eq!((missing.code.as_str(), missing.retryable), ("unsupported_rpc", false));
}

#[test]
fn unreadable_details_are_a_foreign_status() {
    let unknown_category = wire::StableErrorEnvelope { category: 99, ..Default::default() };
    let wrong = pb::Status { code: 5, message: String::new(), details: vec![any(ENVELOPE_TYPE, &unknown_category)] };
    for details in [b"\xff\xff\xff".to_vec(), wrong.encode_to_vec()] {
        let status = Status::with_details(Code::NotFound, "gone", Bytes::from(details));
        let read = error_from_status(&status);
        assert_eq!((read.code.as_str(), read.category), ("rpc_failed", ErrorCategory::NotFound));
    }
}
