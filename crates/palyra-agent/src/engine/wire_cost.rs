//! What a request costs on each wire, part by part.
//!
//! The same request is longer on one wire than on another: names and wrappings differ. Each number is the difference that a part makes to the
//! body as it would be sent, counted with a published vocabulary, so the parts add up to the whole and do not depend on the model that answers.

use palyra_common::RunId;
use palyra_models::{Message, ModelRequest, Purpose, TokenCounter, ToolSpec, Wire};
use palyra_tools::{Offering, Registry};

use super::request_size::REFERENCE_MODEL;
use super::tool_offer::spec_of;
use crate::context;
use crate::prompt::SYSTEM;
use crate::spec::RunSpec;

/// Tokens of one request on one wire, by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireCost {
    /// The wire.
    pub wire: Wire,
    /// Palyra's instructions, and what stands around every request.
    pub system: u64,
    /// Tools that every run is offered.
    pub core_tools: u64,
    /// Tools of servers, skills and clients, and those that the run came to need.
    pub extra_tools: u64,
    /// Project files, the run's surroundings, the operator's instructions for the agent.
    pub project: u64,
    /// Earlier exchanges of the session.
    pub history: u64,
    /// The task.
    pub task: u64,
    /// Everything that followed it.
    pub steps: u64,
}

impl WireCost {
    /// All parts together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.system + self.core_tools + self.extra_tools + self.project + self.history + self.task + self.steps
    }
}

/// Tokens of what every run of a language model is sent at least, on every wire: Palyra's instructions and the tools that are always offered.
#[must_use]
pub fn core_prompt_tokens(registry: &Registry) -> Vec<(Wire, u64)> {
    let always = registry.offers().filter(|(tool, _)| tool.offering == Offering::Always);
    let messages = vec![Message::system(SYSTEM)];
    let request = ModelRequest {
        tools: always.map(|(tool, schema)| spec_of(tool, schema)).collect(),
        ..ModelRequest::new(RunId::from_u128(0), 1, Purpose::Turn, messages)
    };
    let counter = TokenCounter::new(REFERENCE_MODEL);
    Wire::ALL.iter().map(|wire| (*wire, counter.text(&wire.body(&request).to_string()).tokens)).collect()
}

/// The costs of a request on every wire. `core` of its tools are those of every run.
pub(super) fn of(spec: &RunSpec, request: &ModelRequest, core: usize, counter: &TokenCounter) -> Vec<WireCost> {
    Wire::ALL.iter().map(|wire| on(*wire, spec, request, core, counter)).collect()
}

fn on(wire: Wire, spec: &RunSpec, request: &ModelRequest, core: usize, counter: &TokenCounter) -> WireCost {
    let part = |messages: &[Message], tools: &[ToolSpec]| {
        let part = ModelRequest { messages: messages.to_vec().into(), tools: tools.to_vec().into(), ..request.clone() };
        counter.text(&wire.body(&part).to_string()).tokens
    };
    // A conversation has to have a person's message: until it is the task's turn, the shortest one stands in its place. What that one takes is
    // the task's.
    let before_task = |messages: &[Message]| [messages, &[Message::user("-")]].concat();
    let upto = |messages: usize| request.messages.get(..messages).unwrap_or(&request.messages);
    let own = before_task(&[Message::system(&spec.system)]);
    // A message takes half of what an exchange adds; some wires have no conversation that ends with an answer.
    let exchange = before_task(&[own.as_slice(), &[Message::assistant("-", Vec::new())]].concat());
    let in_place = part(&exchange, &[]).saturating_sub(part(&own, &[])) / 2;
    let core_tools = request.tools.get(..core).unwrap_or(&request.tools);
    let task = context::task_message(spec);
    let mut before = in_place;
    let mut next = |whole: u64| {
        let grown = whole.saturating_sub(before);
        before = whole;
        grown
    };
    WireCost {
        wire,
        system: next(part(&own, &[])),
        core_tools: next(part(&own, core_tools)),
        extra_tools: next(part(&own, &request.tools)),
        project: next(part(&before_task(upto(context::instruction_messages(spec))), &request.tools)),
        history: next(part(&before_task(upto(task)), &request.tools)),
        task: in_place + next(part(upto(task + 1), &request.tools)),
        steps: next(part(&request.messages, &request.tools)),
    }
}
