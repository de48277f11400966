//! What a request needs of the model that is to answer it.

use crate::message::Message;
use crate::model_entry::Capability;
use crate::part::PartKind;
use crate::request::{ModelRequest, OutputShape, ToolChoice};
use crate::tokens::{estimate_message_tokens, estimate_tool_tokens};

/// About what a picture or a document costs. Providers differ widely; this only keeps large requests from small windows.
const TOKENS_PER_PART: u32 = 1_000;

/// What a request needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// What the model must be able to do.
    pub capabilities: Vec<Capability>,
    /// About how many tokens request and answer are together.
    pub tokens: u32,
}

impl Needs {
    /// What this request needs.
    #[must_use]
    pub fn of(request: &ModelRequest) -> Self {
        let has =
            |kind: PartKind| request.messages.iter().any(|message| message.parts.iter().any(|part| part.kind == kind));
        let wanted = [
            (Capability::Tools, !request.tools.is_empty() && request.tool_choice != ToolChoice::Forbidden),
            (Capability::Images, has(PartKind::Image)),
            (Capability::Files, has(PartKind::File)),
            (Capability::StructuredOutput, request.output != OutputShape::Text),
        ];
        let capabilities = wanted.into_iter().filter_map(|(capability, needed)| needed.then_some(capability)).collect();
        let messages = request.messages.iter().map(message_tokens);
        let tools = request.tools.iter().map(estimate_tool_tokens);
        let tokens = messages.chain(tools).fold(request.max_output_tokens.unwrap_or(0), u32::saturating_add);
        Self { capabilities, tokens }
    }
}

fn message_tokens(message: &Message) -> u32 {
    let parts = u32::try_from(message.parts.len()).unwrap_or(u32::MAX);
    estimate_message_tokens(message).saturating_add(parts.saturating_mul(TOKENS_PER_PART))
}
