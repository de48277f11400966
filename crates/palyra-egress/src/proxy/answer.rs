//! How the proxy says no: the stable envelope as JSON, with the missing line of the grant, as an HTTP answer or on a raw stream.

use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, PROXY_AUTHENTICATE};
use http::{Response, StatusCode};
use palyra_common::ToStableError as _;

use crate::error::{EgressError, RefusalReason};
use crate::outbound::{OutBody, full};

/// Carries the error code, so that a client can tell an answer of the proxy from one of the host.
const CODE_HEADER: HeaderName = HeaderName::from_static("palyra-egress-error");

fn status_of(error: &EgressError) -> StatusCode {
    match error {
        EgressError::Refused(refusal) => match refusal.reason {
            RefusalReason::AccessDenied => StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            RefusalReason::AmbiguousRequest => StatusCode::BAD_REQUEST,
            RefusalReason::HeaderLimit => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            RefusalReason::Unsupported => StatusCode::NOT_IMPLEMENTED,
            _ => StatusCode::FORBIDDEN,
        },
        EgressError::UrlInvalid { .. } => StatusCode::BAD_REQUEST,
        EgressError::TimedOut { .. } => StatusCode::GATEWAY_TIMEOUT,
        EgressError::TooLarge { what: "the request body", .. } => StatusCode::PAYLOAD_TOO_LARGE,
        EgressError::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    }
}

fn body_of(error: &EgressError) -> String {
    let mut text = serde_json::to_string(&error.to_stable()).unwrap_or_else(|_| error.code().to_owned());
    text.push('\n');
    text
}

/// An answer inside HTTP.
pub(super) fn refuse(error: &EgressError) -> Response<OutBody> {
    let mut response = Response::new(full(body_of(error)));
    *response.status_mut() = status_of(error);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CODE_HEADER, HeaderValue::from_static(error.code()));
    if response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        response.headers_mut().insert(PROXY_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"palyra-egress\""));
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The same answer as bytes, for a stream that hyper does not serve. The connection closes behind it.
pub(super) fn refuse_raw(error: &EgressError) -> Vec<u8> {
    let body = body_of(error);
    let status = status_of(error);
    let authenticate = match status {
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => "proxy-authenticate: Basic realm=\"palyra-egress\"\r\n",
        _ => "",
    };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{CODE_HEADER}: {}\r\n{authenticate}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        error.code(),
        body.len()
    )
    .into_bytes()
}
