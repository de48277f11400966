//! `palyra:host/http`: requests under a grant.
//!
//! The grant's rule is looked at here already, so that a guest learns at once that an address is not covered; the way out reads the address again by its own,
//! stricter rules, resolves it, and follows redirects.

use wasmtime::Result;

use super::wit::failures::Failure;
use super::wit::http::{self, Header, Host, Request, Response};
use crate::grants::{HttpGrant, Rule, Target};
use crate::services::{Credential, HostFailure, HttpRequest, HttpResponse, Placement};
use crate::shared::Shared;
use crate::state::CallState;
use crate::usage::HostCall;

/// Header lines of one request.
const MAX_HEADERS: usize = 128;
/// Bytes of one header's value.
const MAX_VALUE_BYTES: usize = 16 << 10;
/// Secrets in one request.
const MAX_CREDENTIALS: usize = 8;

/// Headers that frame the message or say where it goes: the host writes them.
const RESERVED: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "proxy-authorization",
    "proxy-connection",
];

impl Host for CallState {
    async fn send(&mut self, grant: u64, request: Request) -> Result<Result<Response, Failure>> {
        self.shared.count(HostCall::HttpSend)?;
        let shared = &self.shared;
        let result = match prepare(shared, grant, request) {
            Ok((grant, request)) => shared.services.http(grant, request).await,
            Err(failure) => Err(failure),
        };
        let result = shared.note(HostCall::HttpSend, result);
        Ok(result.map(response).map_err(Failure::from))
    }
}

/// The grant behind the handle and the request for the port.
fn prepare(shared: &Shared, grant: u64, request: Request) -> Result<(&HttpGrant, HttpRequest), HostFailure> {
    shared.within(&[HostCall::HttpSend, HostCall::WasiHttp], shared.limits.http, "requests")?;
    let grant = shared.http(grant).ok_or(HostFailure::NoGrant)?;
    check_method(&request.method)?;
    let target = Target::parse(&request.url).map_err(HostFailure::Invalid)?;
    check_rule(grant, &request.method, &target)?;
    let headers: Vec<(String, Vec<u8>)> =
        request.headers.into_iter().map(|header| (header.name, header.value)).collect();
    check_headers(&headers)?;
    if request.credentials.len() > MAX_CREDENTIALS {
        return Err(HostFailure::Invalid(format!("a request may carry at most {MAX_CREDENTIALS} credentials")));
    }
    let mut credentials = Vec::with_capacity(request.credentials.len());
    for credential in request.credentials {
        let secret = shared.secret(credential.secret).ok_or(HostFailure::NoGrant)?;
        if !secret.may_go_to(&target.host) {
            return Err(HostFailure::Denied(format!(
                "the secret `{}` is not granted for the host `{}`",
                secret.name, target.host
            )));
        }
        credentials.push(Credential { secret: secret.clone(), placement: placement(credential.placement)? });
    }
    let request = HttpRequest { method: request.method, url: request.url, headers, body: request.body, credentials };
    Ok((grant, request))
}

/// Whether the grant's rule covers the request.
fn check_rule(grant: &HttpGrant, method: &str, target: &Target) -> Result<(), HostFailure> {
    let rule = Rule::parse(&grant.rule)
        .map_err(|reason| HostFailure::Denied(format!("the rule `{}` cannot be read: {reason}", grant.rule)))?;
    if rule.covers(method, target) {
        return Ok(());
    }
    Err(HostFailure::Denied(format!(
        "the rule `{}` does not cover `{method} {}://{}:{}{}`",
        grant.rule, target.scheme, target.host, target.port, target.path
    )))
}

/// The first grant whose rule covers a request, for guests that name none.
pub(crate) fn find_grant<'a>(shared: &'a Shared, method: &str, url: &str) -> Result<&'a HttpGrant, HostFailure> {
    let target = Target::parse(url).map_err(HostFailure::Invalid)?;
    let grants = shared.all_http();
    if grants.is_empty() {
        return Err(HostFailure::NoGrant);
    }
    grants.iter().find(|grant| check_rule(grant, method, &target).is_ok()).ok_or_else(|| {
        HostFailure::Denied(format!("no rule covers `{method} {}://{}:{}`", target.scheme, target.host, target.port))
    })
}

/// A method is a short word in capitals, and never one that opens a tunnel.
pub(crate) fn check_method(method: &str) -> Result<(), HostFailure> {
    let word = !method.is_empty() && method.len() <= 16 && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if word && !matches!(method, "CONNECT" | "TRACE") {
        return Ok(());
    }
    Err(HostFailure::Invalid(format!("`{}` is not a method", crate::text::clean(method, 32))))
}

/// Names are tokens, values have no line breaks, and none belongs to the host.
pub(crate) fn check_headers(headers: &[(String, Vec<u8>)]) -> Result<(), HostFailure> {
    if headers.len() > MAX_HEADERS {
        return Err(HostFailure::Invalid(format!("a request may have at most {MAX_HEADERS} headers")));
    }
    for (name, value) in headers {
        check_header_name(name)?;
        if value.len() > MAX_VALUE_BYTES || value.iter().any(|byte| matches!(byte, 0..=8 | 10..=31 | 127)) {
            return Err(HostFailure::Invalid(format!("the value of the header `{name}` is too long or not one line")));
        }
    }
    Ok(())
}

fn check_header_name(name: &str) -> Result<(), HostFailure> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let shown = || crate::text::clean(name, 64);
    if name.is_empty() || name.len() > 128 || !name.bytes().all(token) {
        return Err(HostFailure::Invalid(format!("`{}` is not a valid header name", shown())));
    }
    if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err(HostFailure::Invalid(format!("the header `{}` is set by the host", shown())));
    }
    Ok(())
}

fn placement(placement: http::Placement) -> Result<Placement, HostFailure> {
    match placement {
        http::Placement::Bearer => Ok(Placement::Bearer),
        http::Placement::Basic(user) => {
            if user.len() > 256 || user.contains(':') || user.chars().any(char::is_control) {
                return Err(HostFailure::Invalid(
                    "a user name may not contain a colon or control characters".to_owned(),
                ));
            }
            Ok(Placement::Basic(user))
        }
        http::Placement::Header(name) => check_header_name(&name).map(|()| Placement::Header(name)),
    }
}

fn response(response: HttpResponse) -> Response {
    Response {
        status: response.status,
        headers: response.headers.into_iter().map(|(name, value)| Header { name, value }).collect(),
        body: response.body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_request_is_refused() {
        for (name, value) in [
            ("a b", "x"),
            ("", "x"),
            ("x:", "y"),
            ("x\r\ny", "z"),
            ("x", "a\r\nHost: evil.test"),
            ("x", "a\nb"),
            ("x", "a\0b"),
            ("Host", "evil.test"),
            ("Content-Length", "5"),
            ("transfer-encoding", "chunked"),
            ("Proxy-Authorization", "Basic eA=="),
        ] {
            let headers = [(name.to_owned(), value.as_bytes().to_vec())];
            assert!(matches!(check_headers(&headers), Err(HostFailure::Invalid(_))), "{name:?}: {value:?}");
        }
        assert_eq!(check_headers(&[("X-Note".to_owned(), b"a\tb \xff".to_vec())]), Ok(()));
        for method in ["", "get", "GET /", "CONNECT", "TRACE", "G\r\n", "ABCDEFGHIJKLMNOPQ"] {
            assert!(check_method(method).is_err(), "{method:?}");
        }
        assert_eq!(check_method("PATCH"), Ok(()));
    }
}
