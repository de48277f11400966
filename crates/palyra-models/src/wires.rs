//! What a request looks like on each wire, for whoever wants to know what it costs there. Nothing is sent.

use palyra_common::runtime_contract_enum;
use serde_json::Value;

use crate::request::ModelRequest;
use crate::wire::ToolNames;
use crate::{anthropic, chat, gemini, ollama, openai};

runtime_contract_enum! {
    /// A way of writing requests.
    pub enum Wire("model_wire") {
        /// Chat completions: OpenAI and every server that is compatible with it.
        Chat = "chat",
        /// OpenAI's Responses.
        Responses = "responses",
        /// Anthropic's Messages.
        Anthropic = "anthropic",
        /// Gemini's `generateContent`.
        Gemini = "gemini",
        /// Ollama's `/api/chat`.
        Ollama = "ollama",
    }
}

impl Wire {
    /// The body of this request, as a server of the newest kind gets it.
    #[must_use]
    pub fn body(self, request: &ModelRequest) -> Value {
        let names = ToolNames::for_request(request);
        match self {
            Self::Chat => chat::body_of(request, &names),
            Self::Responses => openai::body_of(request, &names),
            Self::Anthropic => anthropic::body_of(request, &names),
            Self::Gemini => gemini::body_of(request, &names),
            Self::Ollama => ollama::body_of(request, &names),
        }
    }
}
