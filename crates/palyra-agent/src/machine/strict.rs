//! Strict runs: nothing that depends on untrusted bytes reaches the planner or decides whether a person is asked.
//!
//! Three things could tell: what is shown of a result, what is made of a call whose arguments were taken from variables, and whether such a call can be made at all. So a
//! result that depends on untrusted bytes is held in a variable whose preview is the same for all of them, failures included; a reference into a variable leads somewhere
//! whatever the variable holds; and a call is judged by its arguments as the planner wrote them, with the references in place.

use palyra_common::{Integrity, RunMode};
use serde_json::Value;

use super::Machine;
use super::input::CallResult;
use super::state::Call;
use crate::context::Item;
use crate::own_tools::{INTENT, PLAN, SEARCH};
use crate::spec::RunSpec;

/// The first version of the machine that shows nothing of untrusted results in strict runs. Older ones showed their shape.
const SHOWS_NOTHING: u32 = 6;

/// Whether nothing that depends on untrusted bytes may show in this run.
pub(super) fn is_blind(spec: &RunSpec) -> bool {
    spec.mode == RunMode::Strict && spec.machine_version >= SHOWS_NOTHING
}

impl Machine {
    /// The arguments of a call as the planner wrote them, if it took any from variables that must not show; references stand in them as they are.
    #[must_use]
    pub fn blind_arguments(&self, call_id: &str) -> Option<Value> {
        let call = self.call(call_id).filter(|call| is_blind(&self.spec) && !call.references.is_empty())?;
        Some(self.as_written(&call.call_id).unwrap_or_default())
    }

    /// What the planner wrote.
    fn as_written(&self, call_id: &str) -> Option<Value> {
        let requests = self.items().iter().rev().find_map(|item| match item {
            Item::Assistant { calls, .. } => calls.iter().find(|request| request.id == call_id),
            _ => None,
        });
        serde_json::from_str(&requests?.arguments).ok()
    }

    /// Whether what came of a call depends on untrusted bytes, so that nothing of it may show.
    pub(super) fn depends_on_untrusted(&self, call: &Call, result: &CallResult) -> bool {
        let from_a_server = result.server.is_some() && result.failed();
        // What an earlier call did with a variable may show in whatever is looked at later, in the workspace or elsewhere.
        let after_blind_call = self.acted_blindly && ![INTENT, PLAN, SEARCH].contains(&call.tool.as_str());
        is_blind(&self.spec)
            && (!call.references.is_empty()
                || from_a_server
                || after_blind_call
                || result.label.integrity == Integrity::Untrusted)
    }

    /// Remembers that a call was carried out with what the planner has not seen.
    pub(super) fn note_blind_call(&mut self, call: &Call) {
        self.acted_blindly |= is_blind(&self.spec) && !call.references.is_empty();
    }

    /// What loop detection goes by: a call and its result, or what may show of them.
    pub(super) fn repeated(&self, call_id: &str, arguments: Value, content: &str, held: bool) -> (Value, String) {
        let arguments = self.blind_arguments(call_id).unwrap_or(arguments);
        (arguments, if held { String::new() } else { content.to_owned() })
    }
}
