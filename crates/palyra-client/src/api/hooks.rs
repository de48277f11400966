//! Hooks: which plugins are told of which events.

use palyra_common::HookEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All bindings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListHooksResponse {
    /// In the order in which they are asked.
    pub hooks: Vec<HookView>,
}

/// One binding of an event to a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookView {
    /// What it is found by.
    pub hook_id: String,
    /// What it is told of.
    pub event: HookEvent,
    /// The skill, or `SKILL#HOOK` where the skill has several hooks.
    pub plugin_id: String,
    /// Lower ones run first.
    pub order: i32,
    /// Milliseconds it may take.
    pub deadline_ms: u64,
    /// Whether its failure lets the step go on, which a `before` phase does not unless this says so.
    pub fail_open: bool,
    /// Whether it is asked at all.
    pub enabled: bool,
    /// The only tools it is asked about, in phases of tools; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// Binds an event to a plugin; an id that is there already is bound anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetHookParams {
    /// What it is to be found by; made of skill and event when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_id: Option<String>,
    /// What it is told of.
    pub event: HookEvent,
    /// The skill, or `SKILL#HOOK`.
    pub plugin_id: String,
    /// Lower ones run first; 0 when left out.
    #[serde(default)]
    pub order: i32,
    /// Milliseconds it may take; 5,000 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60_000))]
    pub deadline_ms: Option<u64>,
    /// Whether its failure lets the step go on; when left out, only after a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_open: Option<bool>,
    /// Whether it is asked at all; yes when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The only tools it is asked about; a name may end in `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}
