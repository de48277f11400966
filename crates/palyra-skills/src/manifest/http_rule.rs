//! One line of `http_egress_allowlist`.
//!
//! `[METHODS] scheme://host[:port][/path]`, or a host alone, which means `https`. What is read is written back in the one form that the egress rules of
//! the daemon take. A bare `*` can be read, so that an audit can name it; no grant is ever made from it.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::SkillError;

/// How a host is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HttpScheme {
    /// Over TLS.
    Https,
    /// In the clear.
    Http,
}

impl HttpScheme {
    const fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

/// Which hosts a rule names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// Every host; an audit fails it.
    Any,
    /// Every host below this name.
    Below(String),
    /// One host.
    Exact(String),
}

impl HostPattern {
    /// Whether a host in lower case is named.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Below(suffix) => {
                host.strip_suffix(suffix.as_str()).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
            }
            Self::Exact(named) => named == host,
        }
    }

    /// Whether so many hosts are named that the rule is none: all of them, or all below a public ending such as `com`.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        match self {
            Self::Any => true,
            Self::Below(suffix) => !suffix.contains('.'),
            Self::Exact(_) => false,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Any) => false,
            (_, Self::Exact(host)) => self.matches(host),
            (Self::Below(wide), Self::Below(narrow)) => wide == narrow || self.matches(narrow),
            (Self::Exact(_), Self::Below(_)) => false,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Below(suffix) => write!(f, "*.{suffix}"),
            Self::Exact(host) => f.write_str(host),
        }
    }
}

/// Where a skill may send requests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpRule {
    /// How the host is spoken to.
    pub scheme: HttpScheme,
    /// Which hosts.
    pub host: HostPattern,
    /// Which port.
    pub port: u16,
    /// Which methods, in capitals; none means every one.
    pub methods: BTreeSet<String>,
    /// Below which path; `/` is every path.
    pub path_prefix: String,
}

impl HttpRule {
    /// Whether everything that `other` allows is allowed here too.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let methods = self.methods.is_empty() || (!other.methods.is_empty() && other.methods.is_subset(&self.methods));
        let path = self.path_prefix == "/"
            || other.path_prefix == self.path_prefix
            || other
                .path_prefix
                .strip_prefix(self.path_prefix.as_str())
                .is_some_and(|rest| self.path_prefix.ends_with('/') || rest.starts_with('/'));
        self.scheme == other.scheme && self.port == other.port && methods && path && self.host.covers(&other.host)
    }
}

impl FromStr for HttpRule {
    type Err = SkillError;
    fn from_str(text: &str) -> Result<Self, SkillError> {
        read(text).map_err(|reason| SkillError::name("an HTTP rule", text, &reason))
    }
}

fn read(text: &str) -> Result<HttpRule, String> {
    if text.len() > 1024 || text.chars().any(|c| c.is_control() || !c.is_ascii()) {
        return Err("it is too long or not plain ASCII; write an international name as `xn--…`".to_owned());
    }
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let (methods, address) = match words.as_slice() {
        [address] => (BTreeSet::new(), *address),
        [methods, address] => (read_methods(methods)?, *address),
        _ => return Err("expected `[METHODS] scheme://host[:port][/path]`".to_owned()),
    };
    let (scheme, rest) = match address.split_once("://") {
        None => (HttpScheme::Https, address),
        Some(("https", rest)) => (HttpScheme::Https, rest),
        Some(("http", rest)) => (HttpScheme::Http, rest),
        Some((other, _)) => return Err(format!("`{other}` is not a scheme; expected `https` or `http`")),
    };
    if rest.contains(['?', '#', '@', '\\', '%']) {
        return Err("a rule may not have a user, query, fragment or percent sign".to_owned());
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, read_port(port)?),
        _ => (authority, scheme.default_port()),
    };
    if path.split('/').any(|part| part == "." || part == "..") || path.contains("//") {
        return Err("the path contains `.`, `..` or an empty component".to_owned());
    }
    let path_prefix = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
    Ok(HttpRule { scheme, host: read_host(host)?, port, methods, path_prefix })
}

fn read_methods(text: &str) -> Result<BTreeSet<String>, String> {
    if text == "*" {
        return Ok(BTreeSet::new());
    }
    text.split(',')
        .map(|method| {
            let token = (1..=32).contains(&method.len()) && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
            match method {
                "CONNECT" => Err("`CONNECT` is not granted as a method".to_owned()),
                _ if token => Ok(method.to_owned()),
                _ => Err(format!("`{method}` is not an upper-case method such as `GET`")),
            }
        })
        .collect()
}

fn read_port(text: &str) -> Result<u16, String> {
    let canonical = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| canonical).ok_or_else(|| format!("`{text}` is not a port from 1 to 65535"))
}

fn read_host(text: &str) -> Result<HostPattern, String> {
    if text == "*" {
        return Ok(HostPattern::Any);
    }
    if let Some(suffix) = text.strip_prefix("*.") {
        return match read_name(suffix)? {
            name if name.parse::<Ipv4Addr>().is_ok() => Err("an IP address has no subdomains".to_owned()),
            name => Ok(HostPattern::Below(name)),
        };
    }
    if let Some(inside) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address: Ipv6Addr = inside.parse().map_err(|_| format!("`{inside}` is not an IP address"))?;
        return Ok(HostPattern::Exact(format!("[{address}]")));
    }
    read_name(text).map(HostPattern::Exact)
}

fn read_name(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if name.len() > 253 || !name.split('.').all(label) {
        return Err(format!("`{text}` is not a host"));
    }
    // `0x7f.1`, `2130706433` and the like are addresses to some programs and names to others.
    let last = name.rsplit('.').next().unwrap_or_default();
    let numeric = last.starts_with(|c: char| c.is_ascii_digit())
        && (last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x"));
    if numeric && name.parse::<Ipv4Addr>().is_err() {
        return Err(format!("`{text}` looks like an IP address in an unusual spelling"));
    }
    Ok(name)
}

impl fmt::Display for HttpRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, method) in self.methods.iter().enumerate() {
            write!(f, "{}{method}", if index == 0 { "" } else { "," })?;
        }
        if !self.methods.is_empty() {
            f.write_str(" ")?;
        }
        let scheme = match self.scheme {
            HttpScheme::Https => "https",
            HttpScheme::Http => "http",
        };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        if self.path_prefix != "/" {
            f.write_str(&self.path_prefix)?;
        }
        Ok(())
    }
}

impl Serialize for HttpRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HttpRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_written_in_one_form() {
        for (text, form) in [
            ("GET https://API.example.com", "GET https://api.example.com"),
            ("POST,GET https://a.b:8443/v1", "GET,POST https://a.b:8443/v1"),
            ("*.example.com", "https://*.example.com"),
            ("http://example.com:80/", "http://example.com"),
            ("https://[::1]:444", "https://[::1]:444"),
            ("*", "https://*"),
        ] {
            let rule: HttpRule = text.parse().unwrap();
            assert_eq!(rule.to_string(), form);
            assert_eq!(form.parse::<HttpRule>().unwrap(), rule);
        }
        for bad in [
            "",
            "get https://a.b",
            "GET POST https://a.b",
            "ftp://a.b",
            "https://",
            "https://u@a.b",
            "https://a.b?x",
            "https://a..b",
            "https://a.b:0",
            "https://a.b:99999",
            "https://0x7f.1",
            "https://2130706433",
            "https://127.1",
            "https://a.b/../c",
            "CONNECT https://a.b",
            "https://é.com",
            "https://a.b/%2e",
            "https://*.1.2.3.4",
        ] {
            assert!(bad.parse::<HttpRule>().is_err(), "{bad}");
        }
    }

    #[test]
    fn wider_rules_cover_narrower_ones_and_never_the_other_way() {
        for (wide, narrow) in [
            ("https://*.example.com", "GET https://api.example.com"),
            ("GET,POST https://a.b", "GET https://a.b/v1"),
            ("https://a.b/v1", "https://a.b/v1/x"),
            ("https://*.example.com", "https://*.api.example.com"),
        ] {
            let (wide, narrow): (HttpRule, HttpRule) = (wide.parse().unwrap(), narrow.parse().unwrap());
            assert!(wide.covers(&narrow) && wide.covers(&wide));
            assert!(!narrow.covers(&wide));
        }
        let covers = |left: &str, right: &str| left.parse::<HttpRule>().unwrap().covers(&right.parse().unwrap());
        assert!(!covers("https://a.b/v1", "https://a.b/v10"));
        assert!(!covers("https://*.example.com", "https://example.com"));
        assert!(!covers("https://*.example.com", "https://evilexample.com"));
        assert!(!covers("https://a.b", "http://a.b"));
        assert!(!covers("https://a.b", "https://a.b:444"));
    }
}
