//! Hosts, written in one way only.
//!
//! Two programs that read the same text as different hosts are what most tricks against a proxy are made of: `0177.0.0.1`, `0x7f.1`,
//! `2130706433`, `example.com.`, full-width letters, `%2e`, a zone id, a user name before the `@`. So a host is accepted in its canonical
//! spelling alone and everything else is refused with its name. The one exception is letter case, which DNS ignores: it is folded here.
//!
//! Leaves to others: whether an address may be reached (`address`) and whether a grant names the host (`rules`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// Longest name that DNS can carry.
const NAME_LIMIT: usize = 253;
/// Longest label of a name.
const LABEL_LIMIT: usize = 63;

/// A host in its canonical spelling: lower case, no trailing dot, an address as the standard library writes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A DNS name.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// What is odd about the spelling of a host.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostProblem {
    /// Nothing there.
    #[error("the host is empty")]
    Empty,
    /// Longer than DNS allows.
    #[error("the host, or a part of it, is longer than DNS allows")]
    TooLong,
    /// A control character, NUL or white space.
    #[error("the host contains a control character or whitespace")]
    ControlCharacter,
    /// `user@host`
    #[error("the URL contains user information")]
    UserInformation,
    /// `%41`
    #[error("the host is percent-encoded")]
    PercentEncoded,
    /// `[fe80::1%eth0]`
    #[error("the URL contains a zone id")]
    ZoneId,
    /// Letters outside ASCII.
    #[error("the host is not ASCII{}", ascii.as_ref().map(|ascii| format!("; it may mean `{ascii}`")).unwrap_or_default())]
    NotAscii {
        /// The spelling that is accepted, where there is one.
        ascii: Option<String>,
    },
    /// An `xn--` label that stands for nothing, or for something spelled otherwise.
    #[error("the host has a malformed `xn--` label")]
    Punycode,
    /// `0x7f.1`, `2130706433`, `127.1`, `0177.0.0.1`
    #[error("the host looks like an IPv4 address in an unusual spelling")]
    OddAddress,
    /// `::1` without brackets, or brackets around something else.
    #[error("an IPv6 address must be in brackets, and nothing else may be")]
    Brackets,
    /// `example.com.`
    #[error("the host ends with a dot")]
    TrailingDot,
    /// `a..b`
    #[error("the host has an empty part between dots")]
    EmptyLabel,
    /// A hyphen at the edge of a label.
    #[error("a part of the host begins or ends with a hyphen")]
    Hyphen,
    /// Any other character that no host has.
    #[error("the host contains `{0}`")]
    Character(char),
}

impl Host {
    /// Reads a host as it stands in an address, an IPv6 address in brackets.
    pub fn parse(text: &str) -> Result<Self, HostProblem> {
        if text.is_empty() {
            return Err(HostProblem::Empty);
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(HostProblem::ControlCharacter);
        }
        if text.contains('@') {
            return Err(HostProblem::UserInformation);
        }
        if let Some(inside) = text.strip_prefix('[') {
            let inside = inside.strip_suffix(']').ok_or(HostProblem::Brackets)?;
            if inside.contains('%') {
                return Err(HostProblem::ZoneId);
            }
            let address: Ipv6Addr = inside.parse().map_err(|_| HostProblem::Brackets)?;
            return Ok(Self::Address(IpAddr::V6(address)));
        }
        if text.contains('%') {
            return Err(HostProblem::PercentEncoded);
        }
        if text.contains([':', '[', ']']) {
            return Err(HostProblem::Brackets);
        }
        if !text.is_ascii() {
            return Err(HostProblem::NotAscii { ascii: idna::domain_to_ascii_strict(text).ok() });
        }
        let name = text.to_ascii_lowercase();
        if name.ends_with('.') {
            return Err(HostProblem::TrailingDot);
        }
        if ends_in_a_number(&name) {
            // Only the plain four decimal parts are accepted; the standard parser refuses leading zeros.
            return name
                .parse::<Ipv4Addr>()
                .map(|address| Self::Address(IpAddr::V4(address)))
                .map_err(|_| HostProblem::OddAddress);
        }
        check_name(&name)?;
        Ok(Self::Name(name))
    }

    /// Reads a host that may also be a bare IPv6 address, as SOCKS and configuration write it.
    pub fn parse_bare(text: &str) -> Result<Self, HostProblem> {
        match text.parse::<Ipv6Addr>() {
            Ok(address) => Ok(Self::Address(IpAddr::V6(address))),
            Err(_) => Self::parse(text),
        }
    }

    /// The name, if it is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(_) => None,
        }
    }

    /// The address, if it is one.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::Address(address) => Some(*address),
        }
    }
}

impl fmt::Display for Host {
    /// As in an address: IPv6 in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Whether any program might read the text as an IPv4 address: its last part is a number in some base.
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hexadecimal = last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    hexadecimal || (!last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()))
}

fn check_name(name: &str) -> Result<(), HostProblem> {
    if name.len() > NAME_LIMIT {
        return Err(HostProblem::TooLong);
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(HostProblem::EmptyLabel);
        }
        if label.len() > LABEL_LIMIT {
            return Err(HostProblem::TooLong);
        }
        if let Some(odd) = label.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))) {
            return Err(HostProblem::Character(odd));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(HostProblem::Hyphen);
        }
    }
    if name.split('.').any(|label| label.starts_with("xn--")) {
        // A label that decodes to something with another spelling would be two names for one host.
        let (unicode, decoded) = idna::domain_to_unicode(name);
        let round_trip = decoded.ok().and_then(|()| idna::domain_to_ascii_strict(&unicode).ok());
        if round_trip.as_deref() != Some(name) {
            return Err(HostProblem::Punycode);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
