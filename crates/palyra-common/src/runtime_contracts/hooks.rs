//! Hooks: which events they may bind to and what they may answer.

use crate::runtime_contract_enum;
use crate::runtime_contracts::RunLifecycleHookPhase;

runtime_contract_enum! {
    /// What a hook may bind to.
    pub enum HookEvent("hook_event") {
        /// The daemon is up.
        GatewayStartup = "gateway:startup",
        /// A skill was enabled.
        SkillEnabled = "skill:enabled",
        /// A skill was disabled.
        SkillDisabled = "skill:disabled",
        /// A skill was put into quarantine.
        SkillQuarantined = "skill:quarantined",
        /// See [`RunLifecycleHookPhase::BeforeRun`].
        RunBeforeRun = "run:before_run",
        /// See [`RunLifecycleHookPhase::BeforeTool`].
        RunBeforeTool = "run:before_tool",
        /// See [`RunLifecycleHookPhase::AfterTool`].
        RunAfterTool = "run:after_tool",
        /// See [`RunLifecycleHookPhase::BeforeDelivery`].
        RunBeforeDelivery = "run:before_delivery",
        /// See [`RunLifecycleHookPhase::AfterRun`].
        RunAfterRun = "run:after_run",
    }
}

impl HookEvent {
    /// The point in a run that this event stands for, if it is one.
    #[must_use]
    pub const fn run_phase(self) -> Option<RunLifecycleHookPhase> {
        match self {
            Self::GatewayStartup | Self::SkillEnabled | Self::SkillDisabled | Self::SkillQuarantined => None,
            Self::RunBeforeRun => Some(RunLifecycleHookPhase::BeforeRun),
            Self::RunBeforeTool => Some(RunLifecycleHookPhase::BeforeTool),
            Self::RunAfterTool => Some(RunLifecycleHookPhase::AfterTool),
            Self::RunBeforeDelivery => Some(RunLifecycleHookPhase::BeforeDelivery),
            Self::RunAfterRun => Some(RunLifecycleHookPhase::AfterRun),
        }
    }
}

runtime_contract_enum! {
    /// What a hook answers. Ordered from weakest to strongest; among several hooks the strongest answer counts.
    pub enum HookDecision("hook_decision") {
        /// Nothing to say.
        Continue = "continue",
        /// Add a note.
        Annotate = "annotate",
        /// Propose a change that a person sees before it counts.
        TransformPreview = "transform_preview",
        /// Ask a person.
        RequestApproval = "request_approval",
        /// Refuse this step.
        Block = "block",
        /// End the run.
        FailRun = "fail_run",
    }
}

impl HookDecision {
    /// The answer that counts among several; no answer at all means [`HookDecision::Continue`].
    #[must_use]
    pub fn strongest(decisions: impl IntoIterator<Item = Self>) -> Self {
        decisions.into_iter().max().unwrap_or(Self::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_answer_counts() {
        assert!(HookDecision::ALL.is_sorted());
        let answers = [HookDecision::Annotate, HookDecision::Block, HookDecision::RequestApproval];
        assert_eq!(HookDecision::strongest(answers), HookDecision::Block);
        assert_eq!(HookDecision::strongest([]), HookDecision::Continue);
    }

    #[test]
    fn every_phase_of_a_run_has_its_event() {
        for phase in RunLifecycleHookPhase::ALL {
            let event: HookEvent = format!("run:{phase}").parse().unwrap();
            assert_eq!(event.run_phase(), Some(*phase));
        }
    }
}
