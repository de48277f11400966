//! How large a request is, and whether the model's window can hold it.
//!
//! The check is made before the call, because what servers do with a request that is too long differs: some refuse it in words of their own, some
//! silently drop its beginning. It counts with a published vocabulary and adds no safety margin, so that nothing is refused that would have fit;
//! the server still has the last word.

use palyra_models::{Message, ModelError, ModelErrorClass, ToolSpec};

use super::EngineOptions;
use super::tool_offer::ToolOffer;
use crate::context;
use crate::spec::{RunSpec, ToolSelection};

/// The model whose vocabulary sizes are counted in, whatever model answers.
pub(super) const REFERENCE_MODEL: &str = "gpt-5";
/// Tokens kept for an answer whose length is not bounded.
const USUAL_ANSWER: u32 = 1_024;
/// Largest share of the window that is kept for the answer: one part in so many.
const ANSWER_SHARE: u32 = 4;

/// Tokens of a request, by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RequestSize {
    /// Palyra's instructions, the project's files, the agent's instructions.
    instructions: u64,
    tools: u64,
    /// History, task and everything after it.
    conversation: u64,
}

impl RequestSize {
    fn of(options: &EngineOptions, spec: &RunSpec, messages: &[Message], tools: &[ToolSpec]) -> Self {
        let counter = options.spending.counter(REFERENCE_MODEL);
        let (instructions, conversation) = messages.split_at(context::instruction_messages(spec).min(messages.len()));
        let sum = |messages: &[Message]| messages.iter().map(|message| counter.message(message).tokens).sum();
        Self {
            instructions: sum(instructions),
            tools: tools.iter().map(|tool| counter.tool(tool).tokens).sum(),
            conversation: sum(conversation),
        }
    }

    const fn total(self) -> u64 {
        self.instructions + self.tools + self.conversation
    }
}

/// Tokens of the window that are kept for the answer.
fn kept_for_answer(window: u32, bound: Option<u32>) -> u32 {
    bound.unwrap_or(USUAL_ANSWER).min(window / ANSWER_SHARE)
}

/// Tokens of the window that a run has for neither instructions nor conversation: the tools that it is offered first, and the answer.
pub(super) fn reserved(options: &EngineOptions, spec: &RunSpec) -> u32 {
    let window = spec.model.context_tokens;
    if spec.tools == ToolSelection::All || window == 0 {
        return 0;
    }
    let counter = options.spending.counter(REFERENCE_MODEL);
    let tools: u64 = ToolOffer::to(options, spec, &[]).tools.iter().map(|tool| counter.tool(tool).tokens).sum();
    u32::try_from(tools).unwrap_or(u32::MAX).saturating_add(kept_for_answer(window, options.max_output_tokens))
}

/// A request that the model's window cannot hold together with an answer.
pub(super) struct Excess {
    size: RequestSize,
    answer: u32,
    window: u32,
    model: String,
}

impl Excess {
    /// Tokens of the request and of the answer.
    pub(super) fn needed(&self) -> u64 {
        self.size.total() + u64::from(self.answer)
    }

    /// Why the request cannot be sent.
    pub(super) fn error(&self) -> ModelError {
        let Self { size, answer, window, model } = self;
        let RequestSize { instructions, tools, conversation } = size;
        let message = format!(
            "the request needs {} tokens (instructions {instructions}, tools {tools}, conversation {conversation}) and {answer} for the answer, \
             but `{model}` has a window of {window}",
            size.total(),
        );
        ModelError::new(ModelErrorClass::ContextTooLong, message)
    }
}

/// Why the request cannot be sent, if the window cannot hold it together with an answer.
pub(super) fn too_long(
    options: &EngineOptions,
    spec: &RunSpec,
    messages: &[Message],
    tools: &[ToolSpec],
) -> Option<ModelError> {
    excess(options, spec, messages, tools).map(|excess| excess.error())
}

/// By how much the request is too long, if it is.
pub(super) fn excess(
    options: &EngineOptions,
    spec: &RunSpec,
    messages: &[Message],
    tools: &[ToolSpec],
) -> Option<Excess> {
    let window = spec.model.context_tokens;
    // Scripts and the offline planner have no window; a window of nothing is one that nobody knows.
    if spec.tools == ToolSelection::All || window == 0 {
        return None;
    }
    let size = RequestSize::of(options, spec, messages, tools);
    let answer = kept_for_answer(window, options.max_output_tokens);
    let excess = Excess { size, answer, window, model: spec.model.shown() };
    (excess.needed() > u64::from(window)).then_some(excess)
}
