//! Any server that speaks streaming chat completions: llama.cpp, vLLM, LM Studio and many more.
//!
//! The wire itself is `chat`. Nothing is sent before the first call. When no model is named, the server is asked once which ones it has and the first is taken.

use std::time::Duration;

use async_trait::async_trait;
use palyra_common::SecretString;
use tokio::sync::OnceCell;
use tokio::time::sleep;

use crate::chat::{self, ChatClient, Habits};
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::{ModelError, ModelErrorClass};
use crate::model_entry::ModelEntry;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::ModelRequest;
use crate::wire::{HttpProviderOptions, PlaintextKey, RetryPolicy, Timeouts, chance};

/// Name of this provider.
pub(crate) const NAME: &str = "openai_compatible";

/// How to reach a server and how patient to be.
#[derive(Debug, Clone)]
pub struct OpenAiCompatibleOptions {
    /// The provider's name in the configuration.
    pub name: String,
    /// Base URL, with or without `/v1`.
    pub base_url: String,
    /// Key to send, if the server wants one.
    pub api_key: Option<SecretString>,
    /// The key's name, for display and for the journal.
    pub credential: Option<String>,
    /// Model for requests that name none.
    pub model: Option<String>,
    /// How many tokens fit into one call.
    pub context_tokens: u32,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait for the first byte of an answer; the next field if there is none.
    pub first_byte_timeout: Option<Duration>,
    /// Longest silence between parts of an answer.
    pub idle_timeout: Duration,
    /// Longest time for a whole call.
    pub total_timeout: Duration,
    /// Whether the key may be sent without encryption.
    pub plaintext_key: PlaintextKey,
    /// When and how often to try again.
    pub retry: RetryPolicy,
}

impl OpenAiCompatibleOptions {
    /// Defaults for a server at this base URL.
    #[must_use]
    pub fn new(base_url: impl Into<String>) -> Self {
        let usual = HttpProviderOptions { base_url: Some(base_url.into()), ..HttpProviderOptions::new(NAME) };
        Self {
            first_byte_timeout: None,
            idle_timeout: Duration::from_secs(120),
            retry: RetryPolicy::default(),
            ..Self::from(usual)
        }
    }
}

impl From<HttpProviderOptions> for OpenAiCompatibleOptions {
    /// The same, with a single try for every call.
    fn from(options: HttpProviderOptions) -> Self {
        let HttpProviderOptions { name, base_url, api_key, credential, model, context_tokens, timeouts, plaintext_key } =
            options;
        Self {
            name,
            base_url: base_url.unwrap_or_default(),
            api_key,
            credential,
            model,
            context_tokens,
            connect_timeout: timeouts.connect,
            first_byte_timeout: Some(timeouts.first_byte),
            idle_timeout: timeouts.between_chunks,
            total_timeout: timeouts.total,
            plaintext_key,
            retry: RetryPolicy { attempts: 1, ..RetryPolicy::default() },
        }
    }
}

/// A provider that talks to one server.
#[derive(Debug)]
pub struct OpenAiCompatible {
    chat: ChatClient,
    name: String,
    model: Option<String>,
    discovered_model: OnceCell<String>,
    context_tokens: u32,
    retry: RetryPolicy,
}

impl OpenAiCompatible {
    /// Checks the options and prepares a client; nothing is sent. From [`HttpProviderOptions`] it makes a single try for every call.
    pub fn new(options: impl Into<OpenAiCompatibleOptions>) -> Result<Self, ModelError> {
        let options = options.into();
        let retry = options.retry.clone();
        let http = HttpProviderOptions {
            name: options.name,
            base_url: Some(options.base_url),
            api_key: options.api_key,
            credential: options.credential,
            model: options.model,
            context_tokens: options.context_tokens,
            timeouts: Timeouts {
                connect: options.connect_timeout,
                first_byte: options.first_byte_timeout.unwrap_or(options.idle_timeout),
                between_chunks: options.idle_timeout,
                total: options.total_timeout,
            },
            plaintext_key: options.plaintext_key,
        };
        Ok(Self {
            model: http.present_model(),
            discovered_model: OnceCell::new(),
            context_tokens: http.context_tokens,
            chat: ChatClient::new(&http, Habits::default())?,
            name: http.name,
            retry,
        })
    }

    async fn model_for(&self, request: &ModelRequest) -> Result<String, ModelError> {
        if !request.model.is_empty() {
            return Ok(request.model.clone());
        }
        if let Some(model) = &self.model {
            return Ok(model.clone());
        }
        let discover = || async {
            let models = self.chat.models(chat::entry).await?;
            models.into_iter().map(|entry| entry.id).find(|id| !id.is_empty()).ok_or_else(|| {
                ModelError::new(ModelErrorClass::Permanent, "the server offers no model; name one with OPENAI_MODEL")
            })
        };
        self.discovered_model.get_or_try_init(discover).await.cloned()
    }

    async fn attempt(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let model = self.model_for(request).await?;
        self.chat.stream(request, &model).await
    }
}

#[async_trait]
impl ModelProvider for OpenAiCompatible {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> ProviderInfo {
        let model = self.model.as_ref().or_else(|| self.discovered_model.get()).cloned().unwrap_or_default();
        ProviderInfo { name: self.name.clone(), model, context_tokens: self.context_tokens, is_language_model: true }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let mut attempt = 1;
        loop {
            match self.attempt(&request).await {
                Ok(stream) => return Ok(stream),
                Err(error) => match self.retry.wait(attempt, &error, chance()) {
                    Some(wait) => sleep(wait).await,
                    None => return Err(error),
                },
            }
            attempt += 1;
        }
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Option<Embeddings>, ModelError> {
        let mut attempt = 1;
        loop {
            match self.chat.embed(&request).await {
                Ok(embeddings) => return Ok(Some(embeddings)),
                Err(error) => match self.retry.wait(attempt, &error, chance()) {
                    Some(wait) => sleep(wait).await,
                    None => return Err(error),
                },
            }
            attempt += 1;
        }
    }

    async fn models(&self) -> Result<Vec<ModelEntry>, ModelError> {
        let mut entries = self.chat.models(chat::entry).await?;
        // llama.cpp says what it was started with; only its newer versions say so in the list, too. It serves one model.
        if let [only] = entries.as_mut_slice()
            && only.context_tokens.is_none()
            && self.chat.transport().base().is_loopback()
        {
            only.context_tokens = self.chat.window_of_server().await;
        }
        Ok(entries)
    }
}
