//! A run's phases, its reasons to end, its hook points and its mode.

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
    /// Where hooks run in the life of a run.
    pub enum RunLifecycleHookPhase("run_lifecycle_hook_phase") {
        /// Before the first model turn.
        BeforeRun = "before_run",
        /// Before a tool call that was permitted.
        BeforeTool = "before_tool",
        /// After a tool call gave its outcome.
        AfterTool = "after_tool",
        /// Before an answer goes to a surface or a channel.
        BeforeDelivery = "before_delivery",
        /// After the run reached a terminal phase.
        AfterRun = "after_run",
    }
}

runtime_contract_enum! {
    /// How a run treats untrusted tool results. Ordered from loosest to tightest.
    pub enum RunMode("run_mode") {
        /// Results go into the context as they are; the context becomes untrusted.
        Open = "open",
        /// Large or untrusted results become variables with a safe preview.
        Guarded = "guarded",
        /// No untrusted text ever reaches the planner.
        Strict = "strict",
    }
}

runtime_contract_enum! {
    /// What was decided about a tool proposal. Ordered from weakest to strongest, so that combining is `max`.
    pub enum ToolVerdict("tool_verdict") {
        /// It may run.
        Permit = "permit",
        /// It may run once a person agrees.
        NeedsApproval = "needs_approval" | "permit_if_approved",
        /// It may not run.
        Deny = "deny",
    }
}

runtime_contract_enum! {
    /// What becomes of something that a person writes while a session has a run at work. Written to a single run, all but the last are
    /// read after its present turn.
    pub enum InputMode("input_mode") {
        /// It becomes the next run.
        FollowUp = "follow_up",
        /// It becomes the next run together with everything else that was collected.
        Collect = "collect",
        /// It goes into the present run, after the present turn and its tools.
        Steer = "steer",
        /// It goes into the present run at once: what is under way is stopped.
        Interrupt = "interrupt",
    }
}
