//! What the operator agreed to: one digest per tool of a server.
//!
//! INVARIANT: a tool is offered only while its digest equals its pin. Pins are written when a server is added and when the operator
//! agrees again, never on the server's word.

use std::collections::BTreeMap;
use std::path::Path;

use palyra_common::Digest;
use serde::{Deserialize, Serialize};

use crate::{McpError, ToolDescription, files};

/// The only form of the file so far.
const VERSION: u32 = 1;

/// The pinned tools of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    version: u32,
    /// The digest that was agreed to, by the server's own name of the tool.
    pub tools: BTreeMap<String, Digest>,
}

/// How a tool stands to its pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PinState {
    /// It is what was agreed to.
    Pinned,
    /// It is not what was agreed to.
    Changed,
    /// Nobody has agreed to it.
    New,
}

impl Pins {
    /// Agrees to these tools as they are.
    #[must_use]
    pub fn of(tools: &[ToolDescription]) -> Self {
        Self { version: VERSION, tools: tools.iter().map(|tool| (tool.name.clone(), tool.digest())).collect() }
    }

    /// How a tool stands to its pin.
    #[must_use]
    pub fn state(&self, tool: &ToolDescription) -> PinState {
        match self.tools.get(&tool.name) {
            Some(pin) if *pin == tool.digest() => PinState::Pinned,
            Some(_) => PinState::Changed,
            None => PinState::New,
        }
    }

    /// Reads the file. Where there is none, nothing is pinned.
    pub(crate) fn load(path: &Path) -> Result<Self, McpError> {
        let Some(text) = files::read(path)? else {
            return Ok(Self::of(&[]));
        };
        let invalid = |reason: String| McpError::PinsInvalid { path: path.to_owned(), reason };
        let pins: Self = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        if pins.version != VERSION {
            return Err(invalid(format!("its version is {}, not {VERSION}", pins.version)));
        }
        Ok(pins)
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), McpError> {
        let text =
            serde_json::to_string_pretty(self).map_err(|error| McpError::Internal { reason: error.to_string() })?;
        files::replace(path, &format!("{text}\n"))
    }
}
