//! The effective configuration as the running daemon sees it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every key with its value and where that value came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigResponse {
    /// The file that was read, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// All keys, sorted by name.
    pub entries: Vec<ConfigEntryView>,
}

/// One effective key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigEntryView {
    /// Dotted name, such as `run.max_turns`.
    pub key: String,
    /// The value; a secret reference shows the reference, never the secret.
    pub value: serde_json::Value,
    /// Where it came from, for a person: `default`, `profile local`, `palyra.toml:12`, `env PALYRA_RUN_MAX_TURNS`.
    pub source: String,
}
