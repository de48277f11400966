//! Requests to the places that were granted.
//!
//! ```ignore
//! let response = http::Request::get("https://api.example.com/v1/items").bearer(&secret).send()?;
//! ```

use crate::HostFailure;
use crate::bindings::host::palyra::host::{capabilities, http as wit};
use crate::secret::Secret;

/// One place that may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant(u64);

impl Grant {
    /// All of them, in the order of the manifest.
    #[must_use]
    pub fn all() -> Vec<Self> {
        (0..capabilities::http_count()).filter_map(capabilities::http_handle).map(Self).collect()
    }

    /// The rule behind it, such as `GET https://api.example.com`.
    #[must_use]
    pub fn rule(self) -> Option<String> {
        capabilities::http_rule(self.0)
    }
}

/// A request that is being put together.
#[derive(Debug, Clone)]
pub struct Request {
    inner: wit::Request,
}

impl Request {
    /// A request of this method.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            inner: wit::Request {
                method: method.into(),
                url: url.into(),
                headers: Vec::new(),
                body: Vec::new(),
                credentials: Vec::new(),
            },
        }
    }

    /// Asks for something.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// Hands something over.
    pub fn post(url: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        let mut request = Self::new("POST", url);
        request.inner.body = body.into();
        request
    }

    /// Adds a header line.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.inner.headers.push(wit::Header { name: name.into(), value: value.into() });
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.inner.body = body.into();
        self
    }

    /// Has the host add `Authorization: Bearer <secret>`.
    #[must_use]
    pub fn bearer(self, secret: &Secret) -> Self {
        self.credential(secret, wit::Placement::Bearer)
    }

    /// Has the host add `Authorization: Basic <name:secret>`.
    #[must_use]
    pub fn basic(self, name: impl Into<String>, secret: &Secret) -> Self {
        self.credential(secret, wit::Placement::Basic(name.into()))
    }

    /// Has the host add a header with the secret as its value.
    #[must_use]
    pub fn secret_header(self, name: impl Into<String>, secret: &Secret) -> Self {
        self.credential(secret, wit::Placement::Header(name.into()))
    }

    fn credential(mut self, secret: &Secret, placement: wit::Placement) -> Self {
        self.inner.credentials.push(wit::Credential { secret: secret.handle(), placement });
        self
    }

    /// Sends it under the first grant that names its method and host, and waits for the whole answer.
    pub fn send(&self) -> Result<Response, HostFailure> {
        let grants = Grant::all();
        let fitting = grants
            .iter()
            .find(|grant| grant.rule().is_some_and(|rule| rule_names(&rule, &self.inner.method, &self.inner.url)));
        // Without a fitting grant the host is asked all the same: its refusal says what is missing.
        match fitting.or_else(|| grants.first()) {
            Some(grant) => self.send_under(*grant),
            None => Err(HostFailure::NoGrant),
        }
    }

    /// Sends it under this grant and waits for the whole answer.
    pub fn send_under(&self, grant: Grant) -> Result<Response, HostFailure> {
        let response = wit::send(grant.0, &self.inner)?;
        Ok(Response {
            status: response.status,
            headers: response.headers.into_iter().map(|header| (header.name, header.value)).collect(),
            body: response.body,
        })
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Such as 200.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// All of it.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as text; what is not UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The first header of this name, as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        let (_, value) = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(value).into_owned())
    }
}

/// Whether a rule `[METHODS] scheme://host[:port][/path]` looks as if it were about this request. Only a choice among one's own grants: the host decides.
fn rule_names(rule: &str, method: &str, url: &str) -> bool {
    let (methods, place) = rule.rsplit_once(' ').unwrap_or(("", rule));
    let method_fits = methods.is_empty()
        || methods.split([',', ' ']).any(|named| named == "*" || named.trim().eq_ignore_ascii_case(method));
    let (Some((rule_scheme, rule_rest)), Some((scheme, rest))) = (place.split_once("://"), url.split_once("://"))
    else {
        return false;
    };
    let (rule_host, rule_path) = authority(rule_rest);
    let (host, path) = authority(rest);
    let host_fits = match rule_host.strip_prefix("*.") {
        Some(suffix) => host.strip_suffix(suffix).is_some_and(|front| front.ends_with('.')),
        None => host == rule_host,
    };
    method_fits && rule_scheme.eq_ignore_ascii_case(scheme) && host_fits && path.starts_with(&rule_path)
}

/// Host with port in lower case, and the path without its last slash.
fn authority(rest: &str) -> (String, String) {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    (host.to_ascii_lowercase(), path.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grant_for_a_request_is_found_by_method_and_host() {
        let fits = [
            ("GET https://a.example", "GET", "https://a.example/x?y"),
            ("https://a.example", "POST", "https://A.example"),
            ("GET,POST https://*.example", "POST", "https://a.example/x"),
            ("GET https://a.example/v1/", "GET", "https://a.example/v1/items"),
            ("GET http://127.0.0.1:8080", "GET", "http://127.0.0.1:8080/"),
        ];
        for (rule, method, url) in fits {
            assert!(rule_names(rule, method, url), "{rule} {url}");
        }
        let others = [
            ("GET https://a.example", "POST", "https://a.example"),
            ("GET https://a.example", "GET", "http://a.example"),
            ("GET https://a.example", "GET", "https://a.example.evil"),
            ("GET https://*.example", "GET", "https://example"),
            ("GET https://a.example/v1", "GET", "https://a.example/v2"),
            ("GET https://a.example", "GET", "nonsense"),
        ];
        for (rule, method, url) in others {
            assert!(!rule_names(rule, method, url), "{rule} {url}");
        }
    }
}
