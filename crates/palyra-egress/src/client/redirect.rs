//! What a redirect does to a request.
//!
//! The method changes as clients agree it does, the body goes with it or not at all, and what identifies the caller does not leave the
//! origin it was meant for. Whether the new address may be asked is decided again, by the same rules, before anything is sent.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName, ORIGIN, REFERER};
use http::{Method, StatusCode};

use super::fetch::Step;
use crate::error::EgressError;

/// Headers that may say who asks.
const IDENTIFYING: [HeaderName; 4] = [AUTHORIZATION, COOKIE, ORIGIN, REFERER];

/// The next request, if the status redirects.
pub(super) fn follow(step: &Step, status: u16, location: &str) -> Option<Result<Step, EgressError>> {
    let status = StatusCode::from_u16(status).ok()?;
    let method = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND if step.method == Method::POST => Method::GET,
        StatusCode::SEE_OTHER if step.method != Method::HEAD => Method::GET,
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => step.method.clone(),
        _ => return None,
    };
    Some(step.target.join(location).map(|target| {
        let mut next = Step { target, method, ..step.clone() };
        if next.method != step.method {
            next.body = Bytes::new();
            next.headers.remove(CONTENT_TYPE);
        }
        if next.target.origin() != step.target.origin() {
            for name in IDENTIFYING {
                next.headers.remove(name);
            }
            // A caller's own header may be a credential whose name nobody knows: only what shapes the answer goes along.
            let unknown: Vec<HeaderName> = next.headers.keys().filter(|name| !is_harmless(name)).cloned().collect();
            for name in unknown {
                next.headers.remove(name);
            }
        }
        next
    }))
}

fn is_harmless(name: &HeaderName) -> bool {
    const HARMLESS: [&str; 6] =
        ["accept", "accept-encoding", "accept-language", "cache-control", "content-type", "user-agent"];
    HARMLESS.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    fn step(method: &str) -> Step {
        let mut headers = http::HeaderMap::new();
        for name in ["authorization", "cookie", "x-api-key", "accept", "content-type"] {
            headers.insert(name, "v".parse().unwrap());
        }
        let target = Target::parse("https://a.example/x/y?q").unwrap();
        Step { target, method: method.parse().unwrap(), headers, body: Bytes::from_static(b"body") }
    }

    #[test]
    fn methods_change_as_agreed() {
        for (status, before, after) in [
            (301, "POST", "GET"),
            (302, "POST", "GET"),
            (303, "POST", "GET"),
            (303, "PUT", "GET"),
            (303, "HEAD", "HEAD"),
            (301, "PUT", "PUT"),
            (307, "POST", "POST"),
            (308, "PUT", "PUT"),
            (302, "GET", "GET"),
        ] {
            let next = follow(&step(before), status, "/z").unwrap().unwrap();
            assert_eq!(next.method, after, "{status} {before}");
            assert_eq!(next.body.is_empty(), before != after);
            assert_eq!(next.headers.contains_key("content-type"), before == after);
            assert_eq!(next.target.url(), "https://a.example/z");
            assert!(next.headers.contains_key("authorization"), "the same origin keeps its credentials");
        }
        for status in [200, 204, 300, 304, 305, 404] {
            assert!(follow(&step("GET"), status, "/z").is_none());
        }
    }

    #[test]
    fn credentials_stay_at_their_origin() {
        for location in ["https://b.example/", "http://a.example/", "https://a.example:8443/", "//b.example/"] {
            let next = follow(&step("GET"), 307, location).unwrap().unwrap();
            let mut left: Vec<&str> = next.headers.keys().map(HeaderName::as_str).collect();
            left.sort_unstable();
            assert_eq!(left, ["accept", "content-type"], "{location}");
        }
        for location in ["ftp://b.example/", "https://user@b.example/", "http://0x7f.1/", "\\\\b.example"] {
            assert!(follow(&step("GET"), 302, location).unwrap().is_err(), "{location}");
        }
    }
}
