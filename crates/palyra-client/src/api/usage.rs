//! What models used and cost, and how the budgets stand.

use palyra_budget::{BudgetScope, MicroUsd, UsageGrouping, UsageReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which usage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageParams {
    /// By what it is grouped; by model if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UsageGrouping>,
}

/// What was used, and how the budgets stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageResponse {
    /// The report: the caller's own sessions, or all for whoever may see all.
    #[serde(flatten)]
    pub report: UsageReport,
    /// The budgets that bound everybody: the day's, the month's and the one altogether.
    pub budgets: Vec<BudgetView>,
}

/// How a budget stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetView {
    /// What it bounds.
    pub scope: BudgetScope,
    /// Spending that is warned about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<MicroUsd>,
    /// Spending that is never gone beyond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<MicroUsd>,
    /// What is spent; absent for budgets that each run, session or agent has of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<MicroUsd>,
    /// What calls under way may still spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<MicroUsd>,
}
