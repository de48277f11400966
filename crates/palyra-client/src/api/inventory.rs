//! What the daemon has: tools and policies.

use palyra_common::EffectScope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListToolsResponse {
    /// By name.
    pub tools: Vec<ToolView>,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolView {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// How far its effects reach.
    pub scope: EffectScope,
    /// Whether its effect matters outside the run.
    pub consequential: bool,
    /// JSON Schema of its arguments.
    pub input_schema: serde_json::Value,
}

/// All policies in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListPoliciesResponse {
    /// In the order in which they were loaded.
    pub policies: Vec<PolicyView>,
}

/// One policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyView {
    /// Its id.
    pub id: String,
    /// Where it was read.
    pub source: String,
    /// Its text.
    pub text: String,
}
