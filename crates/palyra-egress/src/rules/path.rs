//! Comparing a path with the prefix that a rule names.
//!
//! The proxy does not know how the server reads a path, so a path that two servers could read differently is refused. A path is judged as it is
//! written and as it reads after each round of percent-decoding: servers behind servers decode more than once. Dot segments, with or without
//! parameters behind a `;`, are refused for every rule. Encoded slashes are a common part of names (`@scope%2fpackage`): they are refused only
//! where the rule names a path, because there they could lead out of it.

use memchr::memmem;

/// How a path stands to a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathMatch {
    /// Below the prefix.
    Inside,
    /// Somewhere else.
    Outside,
    /// Inside by its letters, but some servers would read it as a path outside.
    Unclear,
}

/// Why no path may be spelled like this, whatever the rule says.
pub(super) fn problem(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') && path != "*" {
        return Some("the path does not start with a slash");
    }
    if path.bytes().any(|byte| byte == b' ' || byte == b'\\') {
        return Some("the path contains a backslash or whitespace");
    }
    let mut reading = path.as_bytes().to_vec();
    for _ in 0..DECODINGS {
        if let Some(problem) = problem_of_reading(&reading) {
            return Some(problem);
        }
        match decoded(&reading) {
            Some(next) => reading = next,
            None => return None,
        }
    }
    Some("the path is percent-encoded too many times")
}

/// How often a path may be decoded until nothing is left to decode.
const DECODINGS: usize = 4;

fn problem_of_reading(path: &[u8]) -> Option<&'static str> {
    if path.iter().any(u8::is_ascii_control) {
        return Some("the path contains a control character");
    }
    // `%c0%ae` is a dot to decoders that accept overlong sequences. No valid text contains these bytes.
    if path.iter().any(|byte| matches!(byte, 0xc0 | 0xc1 | 0xf5..)) {
        return Some("the path contains bytes that occur in no UTF-8 text");
    }
    path.split(|byte| matches!(byte, b'/' | b'\\'))
        .any(is_dot_segment)
        .then_some("the path contains a dot segment, which servers and proxies resolve differently")
}

/// The bytes with every percent code decoded once; `None` if there is none.
fn decoded(path: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    let mut changed = false;
    while let Some(byte) = path.get(at) {
        let code = if *byte == b'%' { digit(path.get(at + 1)).zip(digit(path.get(at + 2))) } else { None };
        match code.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(value) => {
                out.push(value);
                at += 3;
                changed = true;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    changed.then_some(out)
}

/// As [`problem`], and what a prefix may not contain besides.
pub(super) fn problem_of_prefix(prefix: &str) -> Option<&'static str> {
    problem(prefix).or_else(|| {
        is_unclear(prefix).then_some("the path of a rule may not contain an encoded slash, backslash or percent sign")
    })
}

/// `.` and `..`, also with parameters as in `..;x`.
fn is_dot_segment(segment: &[u8]) -> bool {
    let name = segment.split(|byte| *byte == b';').next().unwrap_or(segment);
    matches!(name, b"." | b"..")
}

fn is_unclear(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    ["%2f", "%5c", "%25", "//"].iter().any(|odd| memmem::find(lower.as_bytes(), odd.as_bytes()).is_some())
}

/// Whether a path lies below a prefix of whole segments.
pub(super) fn compare(prefix: &str, path: &str) -> PathMatch {
    if prefix == "/" {
        return PathMatch::Inside;
    }
    let inside =
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'));
    match (inside, is_unclear(path)) {
        (false, _) => PathMatch::Outside,
        (true, true) => PathMatch::Unclear,
        (true, false) => PathMatch::Inside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_at_segments() {
        use PathMatch as M;
        for (prefix, path, expected) in [
            ("/", "/anything%2f//x", M::Inside),
            ("/v1", "/v1", M::Inside),
            ("/v1", "/v1/", M::Inside),
            ("/v1", "/v1/x", M::Inside),
            ("/v1", "/v1x", M::Outside),
            ("/v1", "/v10", M::Outside),
            ("/v1", "/", M::Outside),
            ("/v1", "/V1", M::Outside),
            ("/v1/", "/v1", M::Outside),
            ("/v1/", "/v1/x", M::Inside),
            ("/v1", "//v1", M::Outside),
            ("/v1", "/v1//x", M::Unclear),
            ("/v1", "/v1/a%2fb", M::Unclear),
            ("/v1", "/v1/%5C..%5Cx", M::Unclear),
            ("/v1", "/v1/%252e%252e/x", M::Unclear),
        ] {
            assert_eq!(compare(prefix, path), expected, "{prefix} {path}");
        }
    }

    #[test]
    fn dot_segments_and_control_characters_are_no_path() {
        for path in [
            "",
            "v1",
            "/v1/../x",
            "/v1/..",
            "/./x",
            "/v1/%2e%2e/x",
            "/v1/.%2E/x",
            "/v1/%2e",
            "/v1/..;/x",
            "/v1/..;a=b/x",
            "/a\\b",
            "/a b",
            "/a%00b",
            "/a%0d%0aX:",
            "/v1/..%2fx",
            "/v1/%2e%2e%2fx",
            "/v1/..%5cx",
            "/v1/%252e%252e/x",
            "/v1/..%3b/x",
            "/v1/..%3Ba=b/x",
            "/v1/%2e%2e%253bx/y",
            "/v1/%25252e%25252e/x",
            "/v1/%2525252525252e/x",
            "/v1/x%2f..%2fy",
            "/v1/%c0%ae%c0%ae/x",
            "/v1/%2509",
        ] {
            assert!(problem(path).is_some(), "{path}");
        }
        for path in [
            "/",
            "/v1/...",
            "/v1/..x",
            "/a.b/.c",
            "/@scope%2fname",
            "/a%20b",
            "/x;y=z",
            "/x%3by",
            "/100%",
            "/%e4%bd%a0",
            "*",
            "//x",
        ] {
            assert_eq!(problem(path), None, "{path}");
        }
    }
}
