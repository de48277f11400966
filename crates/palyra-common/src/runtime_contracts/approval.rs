//! Approvals: what is asked, how it may be answered, how far the answer reaches.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// How an approval was answered.
    pub enum ApprovalDecision("approval_decision") {
        /// Go ahead.
        Allow = "allow",
        /// Do not.
        Deny = "deny",
        /// Nobody answered in time.
        Timeout = "timeout",
        /// The question could not be asked.
        Error = "error",
    }
}

runtime_contract_enum! {
    /// How far an approval reaches.
    pub enum ApprovalScope("approval_scope") {
        /// This one call.
        Once = "once",
        /// Matching calls of this session.
        Session = "session",
        /// Matching calls for a while.
        Timeboxed = "timeboxed",
    }
}

runtime_contract_enum! {
    /// What an approval is about.
    pub enum ApprovalSubject("approval_subject") {
        /// A tool call.
        Tool = "tool",
        /// A message to a channel.
        ChannelSend = "channel_send",
        /// Use of a secret.
        SecretAccess = "secret_access",
        /// An action in a browser.
        BrowserAction = "browser_action",
        /// A capability of a node.
        NodeCapability = "node_capability",
        /// Pairing a device.
        DevicePairing = "device_pairing",
        /// Spending beyond a budget.
        BudgetOverride = "budget_override",
    }
}

runtime_contract_enum! {
    /// How much harm a call could do.
    pub enum Risk("risk") {
        /// None to speak of.
        Low = "low",
        /// Annoying, easily undone.
        Medium = "medium",
        /// Hard to undo.
        High = "high",
        /// Cannot be undone.
        Critical = "critical",
    }
}
