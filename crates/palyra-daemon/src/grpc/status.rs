//! The one place where an error becomes a gRPC status.
//!
//! What we refuse is a [`Refusal`] and goes out whole. What the library refuses by itself (an unknown method, a message that is too large or
//! cannot be decoded) says little, so it gets an envelope here: a caller finds one in every status.

use http::HeaderMap;
use palyra_client::command::invalid_field;
use palyra_common::{ErrorCategory, Retry, StableErrorEnvelope};
use palyra_proto::{MAX_MESSAGE_BYTES, status_from_error};
use tonic::{Code, Status};

use crate::dispatch::Refusal;

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        of_envelope(refusal.envelope())
    }
}

/// The status of an envelope.
pub(super) fn of_envelope(envelope: &StableErrorEnvelope) -> Status {
    if envelope.category == ErrorCategory::Internal {
        tracing::error!(code = envelope.code, message = envelope.message, "a call failed");
    }
    status_from_error(envelope)
}

/// A caller whose time is up.
pub(super) fn too_late() -> Status {
    of_envelope(
        &StableErrorEnvelope::new("deadline_exceeded", ErrorCategory::Availability, "the caller's deadline has passed")
            .hint("allow more time; the command may have taken effect"),
    )
}

/// A `grpc-timeout` that cannot be read.
pub(super) fn bad_timeout() -> Status {
    of_envelope(&invalid_field(
        "grpc-timeout",
        "it must be given once, as one to eight digits and one of H, M, S, m, u, n",
    ))
}

fn no_method(message: &str) -> Status {
    of_envelope(
        &StableErrorEnvelope::new("unsupported_rpc", ErrorCategory::Availability, message)
            .retryable(Retry::Pointless)
            .hint("use gRPC reflection to list the daemon's methods"),
    )
}

/// What the library refused by itself, with an envelope. A status that has details is one of ours and stays as it is.
pub(super) fn of_library(status: Status, path: &str) -> Status {
    if !status.details().is_empty() {
        return status;
    }
    match status.code() {
        Code::Ok | Code::Cancelled => status,
        Code::Unimplemented => no_method(&format!("there is no method `{path}`, or not with this encoding")),
        Code::OutOfRange | Code::ResourceExhausted => of_envelope(
            &StableErrorEnvelope::new(
                "body_too_large",
                ErrorCategory::Validation,
                format!("a message is larger than {MAX_MESSAGE_BYTES} bytes"),
            )
            .hint("send large contents as artifacts, and lists in pages"),
        ),
        // The library means the message that it could not decode.
        Code::Internal | Code::InvalidArgument => of_envelope(
            &StableErrorEnvelope::new(
                "proto_message_invalid",
                ErrorCategory::Validation,
                format!("the message cannot be decoded: {}", status.message()),
            )
            .hint("compare the message with the schema that the daemon serves by reflection"),
        ),
        _ => of_envelope(&palyra_proto::error_from_status(&status)),
    }
}

/// A status as trailers.
pub(super) fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Our texts are percent-encoded and our details base64, so this cannot fail; without a status the caller sees a broken stream.
    let _ = status.add_header(&mut trailers);
    trailers
}

#[cfg(test)]
mod tests {
    use palyra_proto::error_from_status;

    use super::*;

    #[test]
    fn what_the_library_refuses_gets_an_envelope() {
        let table = [
            (Status::unimplemented(""), Code::Unimplemented, "unsupported_rpc"),
            (Status::out_of_range("too large"), Code::ResourceExhausted, "body_too_large"),
            (Status::internal("failed to decode"), Code::InvalidArgument, "proto_message_invalid"),
            (Status::unavailable("gone"), Code::Unavailable, "rpc_failed"),
        ];
        for (status, code, name) in table {
            let ours = of_library(status, "/a.B/C");
            assert_eq!((ours.code(), error_from_status(&ours).code.as_str()), (code, name));
            assert!(!ours.details().is_empty());
        }
    }

    #[test]
    fn what_has_an_envelope_stays_as_it_is() {
        let ours = Status::from(Refusal::internal("broken"));
        let same = of_library(ours, "/a.B/C");
        assert_eq!((same.code(), error_from_status(&same).code.as_str()), (Code::Internal, "internal"));
    }

    #[test]
    fn a_status_fits_into_trailers() {
        let trailers = trailers(&too_late());
        assert_eq!(trailers["grpc-status"], "4");
        assert!(trailers.contains_key("grpc-status-details-bin"));
    }
}
