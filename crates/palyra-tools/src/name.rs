//! The two names of a call: which tool, and which effect.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ToolError;

/// Longest name of a tool.
const MAX_NAME: usize = 128;

/// The name of a tool, such as `palyra.fs.read`: 1 to 128 characters of `a-z`, `0-9`, `_`, `.` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

impl ToolName {
    /// Checks and wraps a name.
    pub fn new(name: impl Into<String>) -> Result<Self, ToolError> {
        let name = name.into();
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b'-');
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(fits) {
            return Err(ToolError::InvalidToolName { name });
        }
        Ok(Self(name))
    }

    /// A name of Palyra's own tools, which are known to fit; tests of the registry hold them to it.
    #[must_use]
    pub fn builtin(name: &'static str) -> Self {
        Self(name.to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for ToolName {
    type Err = ToolError;
    fn from_str(text: &str) -> Result<Self, ToolError> {
        Self::new(text)
    }
}

impl TryFrom<String> for ToolName {
    type Error = ToolError;
    fn try_from(text: String) -> Result<Self, ToolError> {
        Self::new(text)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

/// Equal, ordered and hashed as its text, so that a map of names is searched by text.
impl Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// What makes an effect the same effect after a crash: the engine derives it from the run and the call, so that the second
/// attempt carries the same id as the first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EffectId(String);

impl EffectId {
    /// Wraps an id; any text will do, it is never used as a file name.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
