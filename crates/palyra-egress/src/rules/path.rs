//! Comparing a path with the prefix that a rule names.
//!
//! The proxy does not know how the server reads a path, so a path that two servers could read differently is refused. Dot segments, also
//! percent-encoded or with a `;` behind them, are refused for every rule. Encoded slashes are a common part of names (`@scope%2fpackage`): they
//! are refused only where the rule names a path, because there they could lead out of it.

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
    if path.bytes().any(|b| b <= b' ' || b == 0x7f || b == b'\\') {
        return Some("the path contains a backslash, whitespace or a control character");
    }
    let lower = path.to_ascii_lowercase();
    if ["%00", "%0a", "%0d"].iter().any(|code| lower.contains(code)) {
        return Some("the path contains an encoded control character");
    }
    lower
        .split('/')
        .any(is_dot_segment)
        .then_some("the path contains a dot segment, which servers and proxies resolve differently")
}

/// As [`problem`], and what a prefix may not contain besides.
pub(super) fn problem_of_prefix(prefix: &str) -> Option<&'static str> {
    problem(prefix).or_else(|| {
        is_unclear(prefix).then_some("the path of a rule may not contain an encoded slash, backslash or percent sign")
    })
}

/// `.`, `..`, `%2e.`, `..;x` and the like, in lower case.
fn is_dot_segment(segment: &str) -> bool {
    let name = segment.split(';').next().unwrap_or(segment);
    let decoded = name.replace("%2e", ".").replace("%252e", ".");
    matches!(decoded.as_str(), "." | "..")
        // With an encoded slash inside, the dots may be one of several hidden segments.
        || decoded.split("%2f").chain(decoded.split("%5c")).any(|part| part == "..")
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
        ] {
            assert!(problem(path).is_some(), "{path}");
        }
        for path in ["/", "/v1/...", "/v1/..x", "/a.b/.c", "/@scope%2fname", "/a%20b", "/x;y=z", "*", "//x"] {
            assert_eq!(problem(path), None, "{path}");
        }
    }
}
