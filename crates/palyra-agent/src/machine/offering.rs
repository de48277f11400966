//! Tools that the model is told about because of what happened in the run, and the plan that it keeps.
//!
//! Both follow from the inputs alone, so a replay offers what was offered, and a run that is taken up after a crash goes on with it. A tool
//! that was offered once stays on offer: its name is in the context, and a list that only grows at its end spoils no provider's cache.

use super::Machine;
use super::action::Action;
use super::input::CallResult;
use super::state::Call;
use crate::own_tools::{INSPECT, PATCH, PLAN, Plan, PlanInput};
use crate::spec::ToolSelection;

/// Reads a result that was too long to show.
const ARTIFACT_READ: &str = "palyra.artifact.read";
/// Starts a background process.
const PROCESS_START: &str = "palyra.process.start";
/// What can be done with a background process.
const OF_A_PROCESS: [&str; 3] = ["palyra.process.status", "palyra.process.logs", "palyra.process.stop"];

impl Machine {
    /// Tools that are on offer because the run came to need them, in the order in which it did.
    #[must_use]
    pub fn tools_in_use(&self) -> &[String] {
        &self.tools_in_use
    }

    /// The planner's list of steps, as it stands now.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Takes from a finished call what it says about tools and about the plan.
    pub(super) fn note_offering(&mut self, call: &Call, result: &CallResult, out: &mut Vec<Action>) {
        if result.error.is_some() {
            return;
        }
        if call.tool == PLAN
            && let Ok(input) = PlanInput::parse(call.arguments.clone())
        {
            let plan = Plan { items: input.items, label: self.seen() };
            out.push(Action::UpdatePlan(Box::new(plan.clone())));
            self.plan = Some(plan);
        }
        for tool in &result.found_tools {
            self.offer(tool);
        }
        if result.artifact.is_some() {
            self.offer(ARTIFACT_READ);
        }
        if result.canvas.is_some() {
            self.offer(PATCH);
        }
        if call.tool == PROCESS_START {
            OF_A_PROCESS.iter().for_each(|tool| self.offer(tool));
        }
    }

    /// What the model is to be told about in the next call, beside what every run is offered.
    pub(super) fn on_offer(&mut self) -> Vec<String> {
        if self.readings.iter().any(|reading| reading.variable.is_some()) {
            self.offer(INSPECT);
        }
        self.tools_in_use.clone()
    }

    fn offer(&mut self, tool: &str) {
        match self.spec.tools {
            ToolSelection::All => {}
            ToolSelection::Needed if self.tools_in_use.iter().any(|known| known == tool) => {}
            ToolSelection::Needed => self.tools_in_use.push(tool.to_owned()),
        }
    }
}
