//! One line of a grant: `[METHODS] scheme://host[:port][/path]`.
//!
//! The text form is the form: grants, configuration, refusals and the journal all carry it, and what is written parses to the same rule.
//! `*.example.com` names every host below `example.com` but not that host itself; a path is a prefix of whole segments.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::path;
use crate::error::EgressError;
use crate::host::Host;
use crate::target::Scheme;

/// Longest text of a rule; a longer one is a mistake.
const RULE_LIMIT: usize = 2048;

/// Which hosts a rule names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// One host.
    Exact(Host),
    /// Every host below this name, without the leading dot.
    Suffix(String),
}

impl HostPattern {
    /// Whether a host is named.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        match self {
            Self::Exact(named) => named == host,
            Self::Suffix(suffix) => host
                .name()
                .and_then(|name| name.strip_suffix(suffix.as_str()))
                .is_some_and(|front| front.len() > 1 && front.ends_with('.')),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => write!(f, "{host}"),
            Self::Suffix(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

/// Which methods a rule names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Methods {
    /// Every method.
    Any,
    /// These, in capitals.
    Only(BTreeSet<String>),
}

impl Methods {
    /// Whether a method is named.
    #[must_use]
    pub fn contains(&self, method: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(methods) => methods.contains(method),
        }
    }
}

/// One line of a grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// How the host may be spoken to.
    pub scheme: Scheme,
    /// Which hosts.
    pub host: HostPattern,
    /// Which port.
    pub port: u16,
    /// Which methods.
    pub methods: Methods,
    /// Below which path; `/` is every path.
    pub path_prefix: String,
}

impl Rule {
    /// Reads a rule.
    pub fn parse(text: &str) -> Result<Self, EgressError> {
        read(text).map_err(|reason| EgressError::RuleInvalid {
            rule: text.chars().take(200).flat_map(char::escape_debug).collect(),
            reason,
        })
    }

    /// Whether the rule says nothing about what a tunnel hides: methods and paths.
    #[must_use]
    pub fn covers_everything_inside(&self) -> bool {
        self.methods == Methods::Any && self.path_prefix == "/"
    }
}

fn read(text: &str) -> Result<Rule, String> {
    if text.len() > RULE_LIMIT {
        return Err("it is longer than 2 KiB".to_owned());
    }
    if text.chars().any(|c| c.is_control() || !c.is_ascii()) {
        return Err("it contains a control or non-ASCII character; write an international name as `xn--…`".to_owned());
    }
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let (methods, address) = match (words.next(), words.next(), words.next()) {
        (Some(address), None, None) => (None, address),
        (Some(methods), Some(address), None) => (Some(methods), address),
        (None, ..) => return Err("it is empty".to_owned()),
        _ => return Err("it has more than two words; expected `[METHODS] scheme://host[:port][/path]`".to_owned()),
    };
    let (scheme, rest) = address.split_once("://").ok_or("the address has no `scheme://`")?;
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        "tcp" => Scheme::Tcp,
        other => return Err(format!("`{other}` is not a scheme; expected `http`, `https` or `tcp`")),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains(['?', '#']) || path.contains(['?', '#']) {
        return Err("a rule has no query and no fragment; it names paths only".to_owned());
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(read_port(port)?)),
        _ => (authority, None),
    };
    let port = port.or(scheme.default_port()).ok_or("a `tcp` rule needs a port")?;
    let rule = Rule {
        scheme,
        host: read_host(host)?,
        port,
        methods: methods.map_or(Ok(Methods::Any), read_methods)?,
        path_prefix: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
    };
    if let Some(problem) = path::problem_of_prefix(&rule.path_prefix) {
        return Err(problem.to_owned());
    }
    if scheme == Scheme::Tcp && !rule.covers_everything_inside() {
        return Err("a `tcp` rule cannot have methods or a path".to_owned());
    }
    Ok(rule)
}

fn read_port(text: &str) -> Result<u16, String> {
    let canonical = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| canonical).ok_or_else(|| format!("`{text}` is not a port from 1 to 65535"))
}

fn read_host(text: &str) -> Result<HostPattern, String> {
    if text == "*" {
        return Err("`*` would allow every host; name the hosts".to_owned());
    }
    let Some(suffix) = text.strip_prefix("*.") else {
        return Host::parse(text).map(HostPattern::Exact).map_err(|problem| problem.to_string());
    };
    match Host::parse(suffix).map_err(|problem| problem.to_string())? {
        Host::Address(_) => Err("an IP address has no subdomains".to_owned()),
        Host::Name(name) if !name.contains('.') => Err(format!("`*.{name}` would allow a whole top-level domain")),
        Host::Name(name) => Ok(HostPattern::Suffix(name)),
    }
}

fn read_methods(text: &str) -> Result<Methods, String> {
    if text == "*" {
        return Ok(Methods::Any);
    }
    let mut methods = BTreeSet::new();
    for method in text.split(',') {
        let token =
            !method.is_empty() && method.len() <= 32 && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
        if !token {
            return Err(format!("`{method}` is not an upper-case method such as `GET`"));
        }
        if method == "CONNECT" {
            return Err(
                "`CONNECT` is not granted as a method; an `https` rule without methods allows tunnels".to_owned()
            );
        }
        methods.insert(method.to_owned());
    }
    Ok(Methods::Only(methods))
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Methods::Only(methods) = &self.methods {
            for (index, method) in methods.iter().enumerate() {
                write!(f, "{}{method}", if index == 0 { "" } else { "," })?;
            }
            f.write_str(" ")?;
        }
        write!(f, "{}://{}", self.scheme, self.host)?;
        if Some(self.port) != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        match self.path_prefix.as_str() {
            "/" => Ok(()),
            path => f.write_str(path),
        }
    }
}

impl FromStr for Rule {
    type Err = EgressError;
    fn from_str(text: &str) -> Result<Self, EgressError> {
        Self::parse(text)
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
