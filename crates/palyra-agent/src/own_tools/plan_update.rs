//! `palyra.plan.update`: the planner's list of steps, for the person who watches.
//!
//! The tool itself only answers; the run machine keeps the list when the call has finished and puts it on the tape.

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity, Label, runtime_contract_enum};
use palyra_tools::{
    CallResource, EffectScope, Invocation, Offering, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tool's name.
pub(crate) const PLAN: &str = "palyra.plan.update";

/// Most steps of a plan: more than this is no overview.
const MAX_STEPS: usize = 50;
/// Longest text of a step, in characters.
const MAX_TEXT: usize = 300;

/// Shows the person your plan as a checklist. For tasks of several steps: send the whole list when you begin and whenever it changes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanInput {
    /// All steps, in order.
    pub(crate) items: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// What to do.
    pub text: String,
    /// How far it is.
    pub status: StepStatus,
}

runtime_contract_enum! {
    /// How far a step of a plan is.
    pub enum StepStatus("plan_step_status") {
        /// Not begun.
        Pending = "pending",
        /// Under way.
        InProgress = "in_progress",
        /// Done.
        Done = "done",
    }
}

/// The plan as it stands on the tape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps, in order.
    pub items: Vec<PlanStep>,
    /// Label of their texts: the planner wrote them, knowing all that it had read.
    pub label: Label,
}

impl PlanInput {
    /// The plan in the arguments of a call, if they hold one.
    pub(crate) fn parse(arguments: Value) -> Result<Self, ToolError> {
        let wrong = |message: String| ToolError::argument(PLAN, "items", "invalid_plan", message);
        let input: Self = serde_json::from_value(arguments).map_err(|error| wrong(error.to_string()))?;
        if input.items.len() > MAX_STEPS {
            return Err(wrong(format!("{} steps are too many; at most {MAX_STEPS} are kept", input.items.len())));
        }
        match input.items.iter().position(|step| step.text.trim().is_empty() || step.text.chars().count() > MAX_TEXT) {
            Some(at) => Err(wrong(format!("step {} must have 1 to {MAX_TEXT} characters", at + 1))),
            None => Ok(input),
        }
    }
}

/// The tool.
pub(super) struct PlanUpdate(ToolDeclaration);

impl PlanUpdate {
    pub(super) fn new() -> Result<Self, ToolError> {
        let name = ToolName::new(PLAN)?;
        Ok(Self(
            ToolDeclaration::of::<PlanInput>(name, "Update the plan", "update the plan")
                .reads(EffectScope::Pure)
                .output(Integrity::System, Confidentiality::Public)
                .offered(Offering::Always),
        ))
    }
}

#[async_trait]
impl Tool for PlanUpdate {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, _: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool("plan"))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let steps = PlanInput::parse(invocation.arguments)?.items;
        let done = steps.iter().filter(|step| step.status == StepStatus::Done).count();
        Ok(ToolOutput::text(format!("plan updated: {done} of {} done", steps.len()), self.0.output.clone()))
    }
}
