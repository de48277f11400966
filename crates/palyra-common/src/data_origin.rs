//! Where data comes from and where it may go: the places that the information-flow rule tells apart.
//!
//! A place is an origin of what it gave and a destination of what it receives. Names are those that people see: `mcp.mail`, `skill.acme.notes`,
//! `host.example.org`, `workspace`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place that data comes from or goes to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum DataOrigin {
    /// The person whose run it is.
    User,
    /// Whoever configures this installation.
    Operator,
    /// Files of a workspace, and what programs in it print.
    Workspace,
    /// An outside server, as a whole.
    Server(String),
    /// An installed skill.
    Skill(String),
    /// A host that is reached over the network.
    Host(String),
    /// Somewhere that nobody recorded. Nothing is cleared for it.
    Unknown,
}

/// How names of servers begin.
const SERVER: &str = "mcp.";
/// How names of skills begin.
const SKILL: &str = "skill.";
/// How names of hosts begin.
const HOST: &str = "host.";

impl fmt::Display for DataOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Operator => f.write_str("operator"),
            Self::Workspace => f.write_str("workspace"),
            Self::Server(name) => write!(f, "{SERVER}{name}"),
            Self::Skill(id) => write!(f, "{SKILL}{id}"),
            Self::Host(host) => write!(f, "{HOST}{host}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// A text that names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a place; use workspace, mcp.SERVER, skill.ID or host.NAME")]
pub struct InvalidDataOrigin(String);

impl FromStr for DataOrigin {
    type Err = InvalidDataOrigin;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = |prefix: &str| text.strip_prefix(prefix).filter(|name| !name.is_empty()).map(str::to_owned);
        match text {
            "user" => return Ok(Self::User),
            "operator" => return Ok(Self::Operator),
            "workspace" => return Ok(Self::Workspace),
            "unknown" => return Ok(Self::Unknown),
            _ => {}
        }
        named(SERVER)
            .map(Self::Server)
            .or_else(|| named(SKILL).map(Self::Skill))
            .or_else(|| named(HOST).map(Self::Host))
            .ok_or_else(|| InvalidDataOrigin(text.to_owned()))
    }
}

impl TryFrom<String> for DataOrigin {
    type Error = InvalidDataOrigin;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<DataOrigin> for String {
    fn from(origin: DataOrigin) -> Self {
        origin.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_read_as_it_is_written() {
        let places = [
            DataOrigin::User,
            DataOrigin::Operator,
            DataOrigin::Workspace,
            DataOrigin::Server("mail".to_owned()),
            DataOrigin::Skill("acme.notes".to_owned()),
            DataOrigin::Host("example.org".to_owned()),
            DataOrigin::Unknown,
        ];
        for place in places {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for text in ["", "mcp.", "mail", "skill.", "Workspace"] {
            assert!(text.parse::<DataOrigin>().is_err(), "{text}");
        }
    }
}
