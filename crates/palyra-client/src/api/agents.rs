//! Agents: named ways of working that the operator sets up.

use palyra_common::{RunMode, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which agents to list, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAgentsParams {
    /// How many at most; the daemon has its own upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
    /// Goes on after this one: the last of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A page of agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListAgentsResponse {
    /// By name.
    pub agents: Vec<AgentView>,
    /// Pass as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}

/// Sets an agent up, or replaces the one of the same id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetAgentParams {
    /// What it is called by: small letters, digits, `-` and `_`.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9_-]+$"))]
    pub agent_id: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 200))]
    pub name: String,
    /// What is said to the model at the beginning of every run, as the operator's word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// The model that plans where neither the run nor its session names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How untrusted results are treated at the loosest; no run of this agent can loosen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RunMode>,
    /// Absolute path of the directory to work in where neither the run nor its session names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The only tools that its runs may use: names, or beginnings of names followed by `*`; all that policy permits when there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tools: Vec<String>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentView {
    /// What it is called by.
    pub agent_id: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What is said to the model at the beginning of every run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// The model that plans where nobody names another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How untrusted results are treated at the loosest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RunMode>,
    /// The directory to work in where nobody names another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The only tools that its runs may use; all that policy permits when there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Grows with every change; commands may ask for it with `expected_version`.
    pub version: u64,
    /// When it was first set.
    pub created_at: Timestamp,
    /// When it was last set.
    pub updated_at: Timestamp,
    /// By whom.
    pub updated_by: String,
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemoveAgentResponse {
    /// The agent as it was.
    pub agent: AgentView,
    /// How many bindings went with it.
    pub removed_bindings: u32,
}
