//! One rule about requests: `[METHODS] scheme://host[:port][/path]`.
//!
//! The same line as in an egress grant, so that one text means one thing everywhere. What cannot be read grants nothing.

use std::collections::BTreeSet;
use std::fmt;

use super::target::{Target, read_host, read_path, split_port};

/// A rule as it is understood.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    /// Empty means all.
    methods: BTreeSet<String>,
    scheme: String,
    host: HostPattern,
    port: u16,
    /// A prefix of whole segments; `/` is everything.
    path: String,
}

/// A host, or everything below one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostPattern {
    Exact(String),
    Below(String),
}

impl HostPattern {
    /// Reads `api.example` or `*.example.com`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("*.") {
            Some(parent) if parent.contains('.') => read_host(parent).map(Self::Below),
            Some(_) => Err(format!("`{text}` is too broad")),
            None => read_host(text).map(Self::Exact),
        }
    }

    pub(crate) fn covers(&self, host: &str) -> bool {
        match self {
            Self::Exact(own) => own == host,
            Self::Below(parent) => {
                host.strip_suffix(parent.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
        }
    }

    /// What both cover.
    pub(crate) fn meet(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Exact(host), pattern) | (pattern, Self::Exact(host)) => {
                pattern.covers(host).then(|| Self::Exact(host.clone()))
            }
            (Self::Below(one), Self::Below(two)) => {
                if one == two || other.covers(one) {
                    Some(self.clone())
                } else {
                    self.covers(two).then(|| other.clone())
                }
            }
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => f.write_str(host),
            Self::Below(parent) => write!(f, "*.{parent}"),
        }
    }
}

impl Rule {
    /// Reads a rule; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let (first, second) = (words.next().ok_or("the rule is empty")?, words.next());
        if words.next().is_some() {
            return Err("the rule has more than two parts".to_owned());
        }
        let (methods, address) = match second {
            Some(address) => (read_methods(first)?, address),
            None => (BTreeSet::new(), first),
        };
        let (scheme, rest) = address.split_once("://").ok_or("the rule has no scheme")?;
        let own_port = match scheme {
            "https" => 443,
            "http" => 80,
            _ => return Err(format!("the scheme `{scheme}` is not `https` or `http`")),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') || rest.contains(['?', '#']) {
            return Err("a rule may not contain a user name or a query".to_owned());
        }
        let (host, port) = split_port(authority)?;
        Ok(Self {
            methods,
            scheme: scheme.to_owned(),
            host: HostPattern::parse(host)?,
            port: port.unwrap_or(own_port),
            path: if path.is_empty() { "/".to_owned() } else { read_path(path)? },
        })
    }

    /// Whether a request is under this rule.
    pub(crate) fn covers(&self, method: &str, target: &Target) -> bool {
        (self.methods.is_empty() || self.methods.contains(method))
            && self.scheme == target.scheme
            && self.port == target.port
            && self.host.covers(&target.host)
            && is_below(&target.path, &self.path)
    }

    /// What both allow.
    pub(crate) fn meet(&self, other: &Self) -> Option<Self> {
        if self.scheme != other.scheme || self.port != other.port {
            return None;
        }
        let methods = match (self.methods.is_empty(), other.methods.is_empty()) {
            (true, _) => other.methods.clone(),
            (_, true) => self.methods.clone(),
            _ => {
                let both: BTreeSet<String> = self.methods.intersection(&other.methods).cloned().collect();
                // An empty list would mean all.
                if both.is_empty() {
                    return None;
                }
                both
            }
        };
        let path = if is_below(&self.path, &other.path) {
            self.path.clone()
        } else if is_below(&other.path, &self.path) {
            other.path.clone()
        } else {
            return None;
        };
        let host = self.host.meet(&other.host)?;
        Some(Self { methods, scheme: self.scheme.clone(), host, port: self.port, path })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.methods.is_empty() {
            let methods: Vec<&str> = self.methods.iter().map(String::as_str).collect();
            write!(f, "{} ", methods.join(","))?;
        }
        write!(f, "{}://{}", self.scheme, self.host)?;
        if !matches!((self.scheme.as_str(), self.port), ("https", 443) | ("http", 80)) {
            write!(f, ":{}", self.port)?;
        }
        if self.path != "/" {
            f.write_str(&self.path)?;
        }
        Ok(())
    }
}

fn read_methods(text: &str) -> Result<BTreeSet<String>, String> {
    text.split(',')
        .map(|method| {
            if method.is_empty() || method.len() > 16 || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
                return Err(format!("`{method}` is not a method"));
            }
            Ok(method.to_owned())
        })
        .collect()
}

/// Whether a path is a prefix's own or below it, by whole segments.
fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
