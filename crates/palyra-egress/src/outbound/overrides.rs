//! Requests that ask the server to read them as another request.
//!
//! Frameworks let a header or a query field replace the method, and some servers the path. A rule that names methods or a path has judged what stands
//! in the first line, so such a request is refused under it. A form's `_method` field lies in the body, which is not read: a rule that allows `POST`
//! allows what the server makes of a form.

use http::{HeaderMap, HeaderName};

use crate::error::{Refusal, RefusalReason};
use crate::rules::Rule;

const HEADERS: [&str; 7] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-method",
    "x-original-url",
    "x-original-uri",
    "x-rewrite-url",
];
const QUERY_FIELD: &str = "_method";

/// Refuses what could replace the method or path that `rule` allows.
pub(super) fn check_overrides(rule: &Rule, headers: &HeaderMap, query: Option<&str>) -> Result<(), Refusal> {
    if rule.covers_everything_inside() {
        return Ok(());
    }
    // Gateways that pass headers on as variables make no difference between the two.
    let replaces = |name: &&HeaderName| HEADERS.contains(&name.as_str().replace('_', "-").as_str());
    let header = headers.keys().find(replaces).map(|name| format!("header `{name}`"));
    let field = || query.is_some_and(has_method_field).then(|| format!("query field `{QUERY_FIELD}`"));
    match header.or_else(field) {
        None => Ok(()),
        Some(what) => Err(Refusal::new(
            RefusalReason::AmbiguousRequest,
            format!("the request is refused: its {what} may replace the method or path that the rule `{rule}` allows"),
        )),
    }
}

fn has_method_field(query: &str) -> bool {
    let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_ascii_lowercase().replace("%5f", "_");
    query.split(['&', ';']).any(|pair| name(pair) == QUERY_FIELD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(rule: &str, header: Option<&str>, query: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(name) = header {
            headers.insert(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), "DELETE".parse().unwrap());
        }
        check_overrides(&Rule::parse(rule).unwrap(), &headers, query).is_ok()
    }

    #[test]
    fn what_replaces_the_judged_request_needs_a_rule_for_everything() {
        for name in HEADERS {
            assert!(!verdict("GET https://api.example", Some(name), None), "{name}");
            assert!(!verdict("https://api.example/v1", Some(&name.to_uppercase()), None), "{name}");
            assert!(!verdict("GET https://api.example", Some(&name.to_uppercase().replace('-', "_")), None), "{name}");
            assert!(verdict("https://api.example", Some(name), None), "{name}");
        }
        for query in ["_method=DELETE", "a=b&_method=put", "%5Fmethod=x", "a;_METHOD=x"] {
            assert!(!verdict("POST https://api.example", None, Some(query)), "{query}");
        }
        assert!(verdict("GET https://api.example", Some("accept"), Some("method=x&a_method=y")));
    }
}
