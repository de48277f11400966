//! Health: what each component says about itself, and what that makes of the whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// How well something works. Ordered from best to worst.
    pub enum HealthStatus("health_status") {
        /// As it should.
        Ok = "ok" | "healthy",
        /// It works, with less than it should have.
        Degraded = "degraded",
        /// It does not work.
        Failing = "failing",
    }
}

/// What one component says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentHealth {
    /// Which component, such as `journal`.
    pub component: String,
    /// How well it works.
    pub status: HealthStatus,
    /// The state in one line.
    pub summary: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ComponentHealth {
    /// A component's state without a hint.
    #[must_use]
    pub fn new(component: impl Into<String>, status: HealthStatus, summary: impl Into<String>) -> Self {
        Self { component: component.into(), status, summary: summary.into(), hint: None }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The health of the whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthReport {
    /// The worst status of any component.
    pub status: HealthStatus,
    /// What each component says.
    pub components: Vec<ComponentHealth>,
}

impl HealthReport {
    /// The report over some components; without any there is nothing to complain about.
    #[must_use]
    pub fn of(components: Vec<ComponentHealth>) -> Self {
        let status = components.iter().map(|component| component.status).max().unwrap_or(HealthStatus::Ok);
        Self { status, components }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_component_decides() {
        let part = |status| ComponentHealth::new("journal", status, "text");
        assert_eq!(HealthReport::of(vec![]).status, HealthStatus::Ok);
        assert_eq!(
            HealthReport::of(vec![part(HealthStatus::Ok), part(HealthStatus::Failing), part(HealthStatus::Degraded)])
                .status,
            HealthStatus::Failing
        );
    }
}
