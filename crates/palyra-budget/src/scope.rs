//! What a limit bounds.

use palyra_common::runtime_contract_enum;

runtime_contract_enum! {
    /// What a spending limit bounds.
    pub enum BudgetScope("budget_scope") {
        /// One run, however long it lives.
        Run = "run",
        /// All runs of one session.
        Session = "session",
        /// All runs of one agent.
        Agent = "agent",
        /// Everything within one UTC day.
        Day = "day" | "daily",
        /// Everything within one UTC month.
        Month = "month" | "monthly",
        /// Everything, ever.
        Global = "global" | "total",
    }
}
