//! Making providers. A trait, so that the router can be tested without a network.

use std::sync::Arc;

use crate::accounts::ProviderKind;
use crate::anthropic::Anthropic;
use crate::error::ModelError;
use crate::gemini::Gemini;
use crate::ollama::Ollama;
use crate::openai::OpenAi;
use crate::openai_compatible::OpenAiCompatible;
use crate::openrouter::OpenRouter;
use crate::provider::ModelProvider;
use crate::wire::HttpProviderOptions;

/// Makes providers of a kind.
pub trait ProviderFactory: Send + Sync + 'static {
    /// A provider that makes one try for every call. Nothing is sent by making it.
    fn make(&self, kind: ProviderKind, options: HttpProviderOptions) -> Result<Arc<dyn ModelProvider>, ModelError>;
}

/// The real providers.
#[derive(Debug, Clone, Copy, Default)]
pub struct HttpProviders;

impl ProviderFactory for HttpProviders {
    fn make(&self, kind: ProviderKind, options: HttpProviderOptions) -> Result<Arc<dyn ModelProvider>, ModelError> {
        Ok(match kind {
            ProviderKind::Openai => Arc::new(OpenAi::new(options)?),
            ProviderKind::Anthropic => Arc::new(Anthropic::new(options)?),
            ProviderKind::Gemini => Arc::new(Gemini::new(options)?),
            ProviderKind::Openrouter => Arc::new(OpenRouter::new(options)?),
            ProviderKind::Ollama => Arc::new(Ollama::new(options)?),
            ProviderKind::OpenaiCompatible => Arc::new(OpenAiCompatible::new(options)?),
        })
    }
}
