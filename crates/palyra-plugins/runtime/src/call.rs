//! What a call is made of: what to do, and under which conditions.

use std::sync::Arc;

use palyra_common::{HookDecision, HookEvent, RunLifecycleHookPhase, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::grants::CapabilityGrantSet;
use crate::limits::RuntimeLimits;
use crate::revocation::Revocation;
use crate::services::{HostServices, NoServices};

/// Conditions of one call. By default: the product's limits, no grants, no services, live.
#[derive(Clone)]
pub struct CallOptions {
    /// What it may use up.
    pub limits: RuntimeLimits,
    /// What it was granted, narrowed already.
    pub grants: CapabilityGrantSet,
    /// Takes the grants back meanwhile.
    pub revocation: Revocation,
    /// The port to the rest of Palyra.
    pub services: Arc<dyn HostServices>,
    /// Live or for replay.
    pub mode: ExecutionMode,
    /// Calls it off.
    pub cancel: CancellationToken,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            limits: RuntimeLimits::default(),
            grants: CapabilityGrantSet::default(),
            revocation: Revocation::default(),
            services: Arc::new(NoServices),
            mode: ExecutionMode::Live,
            cancel: CancellationToken::new(),
        }
    }
}

/// Where time and randomness come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExecutionMode {
    /// The machine's clock, the operating system's random bytes.
    #[default]
    Live,
    /// The same every time: clock, random bytes and handles come from here, and so do output and fuel as long as services answer the same.
    Deterministic {
        /// What time it is.
        now: Timestamp,
        /// What random bytes are made from.
        seed: u64,
    },
}

/// A call of a tool.
#[derive(Clone)]
pub struct ToolCall {
    /// Its id in the plugin.
    pub tool: String,
    /// A JSON text; whoever calls has validated it.
    pub input: String,
    /// Under which conditions.
    pub options: CallOptions,
}

/// An event for a hook.
#[derive(Clone)]
pub struct HookCall {
    /// What happens or is about to.
    pub event: HookEvent,
    /// When.
    pub at: Timestamp,
    /// The run it belongs to.
    pub run_id: Option<String>,
    /// What there is to know, as a JSON text.
    pub payload: String,
    /// Under which conditions.
    pub options: CallOptions,
}

/// What a plugin says about one of its tools. Nobody has to believe it: the manifest counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDescription {
    /// Unique in the plugin.
    pub id: String,
    /// A few words for people.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// JSON Schema of the input.
    pub input_schema: String,
    /// JSON Schema of the output.
    pub output_schema: String,
}

/// What a hook says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookAnswer {
    /// What is to happen; allowed for the event.
    pub verdict: HookDecision,
    /// Why, in one line.
    pub reason: String,
    /// The proposed text, with [`HookDecision::TransformPreview`] and only then.
    pub text: Option<String>,
}

/// Whether an event allows an answer: block and ask only before an effect, propose text only before delivery, end a run only in a run.
#[must_use]
pub fn allows(event: HookEvent, decision: HookDecision) -> bool {
    use RunLifecycleHookPhase::{BeforeDelivery, BeforeRun, BeforeTool};
    let phase = event.run_phase();
    match decision {
        HookDecision::Continue | HookDecision::Annotate => true,
        HookDecision::TransformPreview => phase == Some(BeforeDelivery),
        HookDecision::RequestApproval | HookDecision::Block => {
            matches!(phase, Some(BeforeRun | BeforeTool | BeforeDelivery))
        }
        HookDecision::FailRun => phase.is_some(),
    }
}
