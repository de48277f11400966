//! What binds a plugin to an event.
//!
//! A binding is operator input that is kept on the journal. The rules here say which bindings make sense; who may make one is decided elsewhere.

use palyra_common::{HookEvent, RunLifecycleHookPhase, runtime_contract_enum};
use serde::{Deserialize, Serialize};

use crate::error::AgentError;

/// Longest id of a binding.
const MAX_ID: usize = 64;
/// Longest name of a plugin: a skill id, `#` and the id of a hook in it.
const MAX_PLUGIN: usize = 160;
/// Most patterns of tools in one binding.
const MAX_TOOLS: usize = 64;
/// Longest pattern of a tool's name: names have at most as many characters.
const MAX_PATTERN: usize = 128;
/// How long a hook may take if nothing else is said.
const DEFAULT_DEADLINE_MS: u64 = 5_000;
/// The longest a hook may take: every call of a tool waits for it.
const MAX_DEADLINE_MS: u64 = 30_000;

runtime_contract_enum! {
    /// What it means that a hook fails, is too slow, or answers what it may not.
    pub enum HookFailureMode("hook_failure_mode") {
        /// The step is refused.
        FailClosed = "fail_closed",
        /// The failure is recorded and the step goes on.
        FailOpen = "fail_open",
    }
}

impl HookFailureMode {
    /// What holds if a binding says nothing: what comes before an effect fails closed, everything else is recorded and goes on.
    #[must_use]
    pub const fn default_for(event: HookEvent) -> Self {
        if comes_before_an_effect(event) { Self::FailClosed } else { Self::FailOpen }
    }
}

runtime_contract_enum! {
    /// Whether a binding counts.
    pub enum HookSwitch("hook_switch") {
        /// It counts.
        Enabled = "enabled",
        /// It is kept and does not count.
        Disabled = "disabled",
    }
}

/// A plugin that is asked at an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookBindingRecord {
    /// Its own name, such as `guard-writes`.
    pub id: String,
    /// When it is asked.
    pub event: HookEvent,
    /// Whom: a skill, or one hook of it as `skill#hook`.
    pub plugin_id: String,
    /// Smaller is asked earlier; equal ones in the order of their ids.
    #[serde(default)]
    pub order: i32,
    /// How long it may take, in milliseconds.
    #[serde(default = "default_deadline")]
    pub deadline_ms: u64,
    /// What it means that it fails.
    pub on_failure: HookFailureMode,
    /// Whether it counts.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Only for calls of these tools: names, or beginnings of names followed by `*`. Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

const fn default_deadline() -> u64 {
    DEFAULT_DEADLINE_MS
}

const fn yes() -> bool {
    true
}

const fn comes_before_an_effect(event: HookEvent) -> bool {
    matches!(event, HookEvent::RunBeforeRun | HookEvent::RunBeforeTool | HookEvent::RunBeforeDelivery)
}

const fn is_about_a_tool(event: HookEvent) -> bool {
    matches!(event, HookEvent::RunBeforeTool | HookEvent::RunAfterTool)
}

impl HookBindingRecord {
    /// A binding with the defaults of its event.
    #[must_use]
    pub fn new(id: impl Into<String>, event: HookEvent, plugin_id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            event,
            plugin_id: plugin_id.into(),
            order: 0,
            deadline_ms: DEFAULT_DEADLINE_MS,
            on_failure: HookFailureMode::default_for(event),
            enabled: true,
            tools: Vec::new(),
        }
    }

    /// Refuses a binding that makes no sense.
    ///
    /// # Errors
    /// Names the field and what is wrong with it.
    pub fn check(&self) -> Result<(), AgentError> {
        let wrong = |field, why: &str| Err(AgentError::HookBindingInvalid { field, why: why.to_owned() });
        let name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        if self.id.is_empty() || self.id.len() > MAX_ID || !self.id.bytes().all(name) {
            return wrong("id", "it must be 1 to 64 characters of `a-z`, `0-9`, `.`, `_` and `-`");
        }
        let plugin = |byte: u8| name(byte) || byte == b'#';
        let hashes = self.plugin_id.bytes().filter(|byte| *byte == b'#').count();
        if self.plugin_id.is_empty()
            || self.plugin_id.len() > MAX_PLUGIN
            || hashes > 1
            || !self.plugin_id.bytes().all(plugin)
        {
            return wrong("plugin_id", "it must be the id of a skill, or `skill#hook`");
        }
        if self.deadline_ms == 0 || self.deadline_ms > MAX_DEADLINE_MS {
            return wrong("deadline_ms", "it must be between 1 and 30000");
        }
        if self.on_failure == HookFailureMode::FailClosed && !comes_before_an_effect(self.event) {
            return wrong("on_failure", "only `before_…` events can fail closed; later events cannot refuse anything");
        }
        if !self.tools.is_empty() && !is_about_a_tool(self.event) {
            return wrong("tools", "only `run:before_tool` and `run:after_tool` can be limited to tools");
        }
        if self.tools.len() > MAX_TOOLS {
            return wrong("tools", "there are more than 64");
        }
        let pattern = |pattern: &String| {
            let stem = pattern.strip_suffix('*').unwrap_or(pattern);
            !pattern.is_empty() && pattern.len() <= MAX_PATTERN && stem.bytes().all(name)
        };
        if !self.tools.iter().all(pattern) {
            return wrong("tools", "each must be a tool name, or a prefix followed by `*`");
        }
        Ok(())
    }

    /// Whether it is asked in this phase of a run, about this tool if the phase is about one.
    #[must_use]
    pub fn applies(&self, phase: RunLifecycleHookPhase, tool: Option<&str>) -> bool {
        let fits = |pattern: &String, tool: &str| match pattern.strip_suffix('*') {
            Some(stem) => tool.starts_with(stem),
            None => pattern == tool,
        };
        self.enabled
            && self.event.run_phase() == Some(phase)
            && tool.is_none_or(|tool| self.tools.is_empty() || self.tools.iter().any(|pattern| fits(pattern, tool)))
    }

    /// Sorts bindings into the order in which they are asked.
    pub(crate) fn sort(bindings: &mut [Self]) {
        bindings.sort_by(|left, right| left.order.cmp(&right.order).then_with(|| left.id.cmp(&right.id)));
    }
}
