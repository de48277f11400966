//! What a model thought before it spoke.
//!
//! Providers hand out blocks of reasoning, some readable, some sealed, and expect them back unchanged in later turns of the same
//! task. A block belongs to whoever wrote it: it goes back to that provider and to no other.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One block of reasoning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasoningBlock {
    /// The wire format that wrote it, such as `anthropic`; no other may be given it.
    pub origin: String,
    /// What people may read of it; empty if it is sealed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What has to go back as it came: signatures, sealed contents, ids.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub payload: Value,
    /// How many tool calls of the same turn stood before it.
    #[serde(default)]
    pub position: u32,
}
