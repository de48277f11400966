//! Addresses of requests, read strictly.
//!
//! What browsers forgive (backslashes, tabs, missing slashes, user names, odd hosts) is refused here, so that the host that was checked is the
//! host that is asked. The path is kept as it was written, apart from characters that no request line may carry, which are percent-encoded.
//! Relative references of redirects are joined here as well, by RFC 3986 and nothing more.

use std::fmt;

use palyra_common::{RedactedUrl, runtime_contract_enum};

use crate::error::{EgressError, Refusal, RefusalReason};
use crate::host::Host;

/// Longest address that is looked at: servers refuse longer ones, and logs should not carry them.
const URL_LIMIT: usize = 16 * 1024;

runtime_contract_enum! {
    /// How a host is spoken to.
    pub enum Scheme("egress_scheme") {
        /// HTTP in the clear.
        Http = "http",
        /// HTTP inside TLS, or TLS that is passed on unseen.
        Https = "https",
        /// Bytes that are passed on unseen, for protocols that are not HTTP.
        Tcp = "tcp",
    }
}

impl Scheme {
    /// The port when none is named.
    #[must_use]
    pub const fn default_port(self) -> Option<u16> {
        match self {
            Self::Http => Some(80),
            Self::Https => Some(443),
            Self::Tcp => None,
        }
    }
}

/// Where one request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// How the host is spoken to.
    pub scheme: Scheme,
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// The path, beginning with a slash.
    pub path: String,
    /// The query, without the question mark.
    pub query: Option<String>,
}

impl Target {
    /// Reads an `http` or `https` address. A fragment is dropped.
    pub fn parse(url: &str) -> Result<Self, EgressError> {
        let invalid = |reason: &str| EgressError::UrlInvalid { url: shown(url), reason: reason.to_owned() };
        if url.len() > URL_LIMIT {
            return Err(EgressError::UrlInvalid {
                url: shown_start(url),
                reason: "it is longer than 16 KiB".to_owned(),
            });
        }
        if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(invalid("it contains a control character or whitespace"));
        }
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| invalid("it does not start with `http://` or `https://`"))?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(invalid("only `http` and `https` can be requested")),
        };
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (host, port) = parse_authority(authority)?;
        let port = port.or(scheme.default_port()).ok_or_else(|| invalid("it names no port"))?;
        let (path, query) = split_path(rest.split('#').next().unwrap_or(""));
        Ok(Self {
            scheme,
            host,
            port,
            path: encode(if path.is_empty() { "/" } else { path })?,
            query: query.map(encode).transpose()?,
        })
    }

    /// The address that a reference in an answer of this one leads to.
    pub fn join(&self, reference: &str) -> Result<Self, EgressError> {
        let reference = reference.trim_matches([' ', '\t']);
        let before_path = reference.find(['/', '?', '#']).unwrap_or(reference.len());
        let has_scheme = reference.split_at(before_path).0.contains(':');
        if has_scheme {
            return Self::parse(reference);
        }
        if reference.starts_with("//") {
            return Self::parse(&format!("{}:{reference}", self.scheme));
        }
        let origin = self.origin();
        let without_fragment = reference.split('#').next().unwrap_or("");
        if without_fragment.is_empty() {
            return Ok(self.clone());
        }
        if without_fragment.starts_with('?') {
            return Self::parse(&format!("{origin}{}{without_fragment}", self.path));
        }
        let (path, query) = split_path(without_fragment);
        let merged = if path.starts_with('/') {
            path.to_owned()
        } else {
            let folder = self.path.rfind('/').map_or("/", |slash| self.path.split_at(slash + 1).0);
            format!("{folder}{path}")
        };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Self::parse(&format!("{origin}{}{query}", remove_dots(&merged)))
    }

    /// `scheme://host[:port]`
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority())
    }

    /// `host[:port]`, the port only where it is not the scheme's own; what the `Host` header must say.
    #[must_use]
    pub fn authority(&self) -> String {
        if Some(self.port) == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// What stands in the request line: path and query.
    #[must_use]
    pub fn path_and_query(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// The whole address, query included. For requests, never for logs.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.origin(), self.path_and_query())
    }
}

impl fmt::Display for Target {
    /// The address without query values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", RedactedUrl::new(self.url()))
    }
}

/// Reads `host[:port]`. A host in an odd spelling is a refusal, not a slip: nobody writes one by accident.
pub(crate) fn parse_authority(authority: &str) -> Result<(Host, Option<u16>), EgressError> {
    let invalid =
        |reason: &str| EgressError::UrlInvalid { url: shown(&format!("//{authority}")), reason: reason.to_owned() };
    let refused = |problem: crate::host::HostProblem| {
        let shown = if authority.contains('@') { "…".to_owned() } else { authority.escape_debug().to_string() };
        EgressError::Refused(Refusal::new(
            RefusalReason::HostSpelling,
            format!("the host `{shown}` is refused: {problem}"),
        ))
    };
    if authority.contains('@') {
        return Err(refused(crate::host::HostProblem::UserInformation));
    }
    let port_at = match authority.rfind(']') {
        Some(bracket) => authority.split_at(bracket).1.find(':').map(|colon| bracket + colon),
        None => authority.rfind(':'),
    };
    let (host, port) = match port_at {
        Some(colon) => {
            let (host, port) = authority.split_at(colon);
            let digits = port.trim_start_matches(':');
            let canonical = !digits.is_empty()
                && port.len() == digits.len() + 1
                && digits.bytes().all(|b| b.is_ascii_digit())
                && !digits.starts_with('0');
            let number = digits
                .parse::<u16>()
                .ok()
                .filter(|_| canonical)
                .ok_or_else(|| invalid("the port is not a number from 1 to 65535"))?;
            (host, Some(number))
        }
        None => (authority, None),
    };
    Ok((Host::parse(host).map_err(refused)?, port))
}

fn split_path(text: &str) -> (&str, Option<&str>) {
    match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    }
}

/// Percent-encodes what may not stand in a request line. A backslash is refused: some servers read it as a slash.
fn encode(text: &str) -> Result<String, EgressError> {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'\\' => {
                let message = "the URL contains a backslash, which some programs treat as a slash";
                return Err(Refusal::new(RefusalReason::PathSpelling, message).into());
            }
            b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80.. => encoded.push_str(&format!("%{byte:02X}")),
            _ => encoded.push(char::from(byte)),
        }
    }
    Ok(encoded)
}

/// RFC 3986, 5.2.4, for paths that begin with a slash.
fn remove_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." => {
                if last {
                    kept.push("");
                }
            }
            ".." => {
                kept.pop();
                if last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}

fn shown(url: &str) -> String {
    RedactedUrl::new(url.escape_debug().to_string()).to_string()
}

fn shown_start(url: &str) -> String {
    shown(&url.chars().take(64).collect::<String>())
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
