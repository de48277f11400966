//! Making providers. A trait, so that the router can be tested without a network.

use std::sync::Arc;

use crate::accounts::ProviderKind;
use crate::error::ModelError;
use crate::openai_compatible::OpenAiCompatible;
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
        match kind {
            ProviderKind::OpenaiCompatible => Ok(Arc::new(OpenAiCompatible::new(options)?)),
            ProviderKind::Openai
            | ProviderKind::Anthropic
            | ProviderKind::Gemini
            | ProviderKind::Openrouter
            | ProviderKind::Ollama => Err(ModelError::new(
                crate::error::ModelErrorClass::Permanent,
                format!("providers of the kind `{kind}` are not built in yet"),
            )),
        }
    }
}
