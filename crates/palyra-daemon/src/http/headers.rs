//! Headers that every answer carries, so that a browser never treats one as a page, a script or a frame of something else.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue};

const EVERYWHERE: [(HeaderName, &str); 6] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (CACHE_CONTROL, "no-store"),
];

/// Adds what an answer does not say itself.
pub(super) fn add(headers: &mut HeaderMap) {
    // At once, since a map that grows by itself is arranged anew twice.
    headers.reserve(EVERYWHERE.len());
    for (name, value) in EVERYWHERE {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}
