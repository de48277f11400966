//! The name of a server: short and plain, because it becomes part of tool names and of file names.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::McpError;

/// Longest name of a server; with it a tool's name stays within what the engine takes.
const MAX_NAME: usize = 32;

/// The operator's name for a server: 1 to 32 characters of `a-z`, `0-9`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(String);

impl ServerName {
    /// Checks and wraps a name.
    pub fn new(name: impl Into<String>) -> Result<Self, McpError> {
        let name = name.into();
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) {
            return Err(McpError::ServerNameInvalid { name });
        }
        Ok(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name under which the engine knows a tool of this server: `mcp.<server>.<tool>`. What a tool's name may not hold becomes
    /// `_`; whoever offers tools has to look out for two that end up the same.
    #[must_use]
    pub fn tool_name(&self, tool: &str) -> String {
        let plain = tool.chars().map(|c| match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '_' | '.' | '-') => c,
            _ => '_',
        });
        // 128 is the engine's limit for the whole name.
        format!("mcp.{}.{}", self.0, plain.take(128 - MAX_NAME - 5).collect::<String>())
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for ServerName {
    type Err = McpError;
    fn from_str(text: &str) -> Result<Self, McpError> {
        Self::new(text)
    }
}

impl TryFrom<String> for ServerName {
    type Error = McpError;
    fn try_from(text: String) -> Result<Self, McpError> {
        Self::new(text)
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> Self {
        name.0
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["a", "mail", "web-search_2", &"x".repeat(32)] {
            assert!(ServerName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "Mail", "a.b", "../x", "a b", "ä", &"x".repeat(33)] {
            assert!(ServerName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tool_name_fits_what_the_engine_takes() {
        let server = ServerName::new("m").unwrap();
        assert_eq!(server.tool_name("getUser/Info x"), "mcp.m.getuser_info_x");
        let longest = ServerName::new("x".repeat(32)).unwrap().tool_name(&"y".repeat(500));
        assert_eq!(longest.len(), 128);
    }
}
