//! Runtime vocabulary: the values that users, clients and stored data rely on.

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// The public phases of a run; also exactly the states of the run machine.
    pub enum RunLifecyclePhase("run_lifecycle_phase") {
        /// Accepted, not started.
        Queued = "queued" | "pending" | "accepted",
        /// A model or a tool is at work.
        Running = "running" | "in_progress" | "streaming",
        /// A person has to decide.
        WaitingForApproval = "waiting_for_approval" | "waiting",
        /// Held by a person until resumed.
        Paused = "paused",
        /// Ended with an answer.
        Completed = "completed" | "done" | "succeeded",
        /// Ended by a limit or an error.
        Failed = "failed",
        /// Ended by a cancellation or a refusal.
        Aborted = "aborted" | "cancelled",
        /// Ended because it stayed unfinished for too long.
        Expired = "expired" | "timed_out",
    }
}

impl RunLifecyclePhase {
    /// Whether a run in this phase is over for good.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Aborted | Self::Expired)
    }
}

runtime_contract_enum! {
    /// Why a run ended.
    pub enum TerminationReason("termination_reason") {
        /// The model gave its answer.
        FinalAnswer = "final_answer",
        /// The limit on model turns was reached.
        MaxTurns = "max_turns",
        /// The limit on tool calls was reached, or the same call went round in circles.
        MaxToolCalls = "max_tool_calls",
        /// The limit on working time was reached.
        WallClock = "wall_clock",
        /// Somebody cancelled the run.
        Cancellation = "cancellation",
        /// A person refused an approval that the run could not go on without.
        ApprovalDenied = "approval_denied",
        /// The model provider failed for good.
        ProviderError = "provider_error",
        /// The context cannot be made small enough for the model.
        ContextBudgetExhausted = "context_budget_exhausted",
        /// A spending limit was reached.
        BudgetExceeded = "budget_exceeded",
    }
}

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
