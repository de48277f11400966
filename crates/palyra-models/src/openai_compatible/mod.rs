//! Any server that speaks streaming chat completions.
//!
//! - `endpoint` reads the base URL, `transport` sends, `embeddings` asks for vectors, `wire` writes requests, `answer` reads bodies with `sse` and
//!   `decode`, `failure` understands refusals, `retry` decides about another try, `tool_names` maps names both ways.
//!
//! Nothing is sent before the first call. When no model is named, the server is asked once which ones it has and the
//! first is taken.

mod answer;
mod decode;
mod embeddings;
mod endpoint;
mod failure;
mod retry;
mod sse;
mod tls;
mod tool_names;
mod transport;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream;
use palyra_common::SecretString;
use tokio::sync::OnceCell;
use tokio::time::sleep;

use self::answer::Answer;
use self::decode::Decoder;
use self::endpoint::Endpoint;
use self::tool_names::ToolNames;
use self::transport::Transport;
use self::wire::{Dialect, Learned};
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::{ModelError, ModelErrorClass};
use crate::event::ModelEvent;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::ModelRequest;

pub use self::retry::RetryPolicy;
pub(crate) use self::sse::sse_events;
pub use self::tls::install_crypto_provider;

/// Name of this provider.
pub(crate) const NAME: &str = "openai_compatible";
/// Window assumed when nobody said: what current models offer at least.
pub(crate) const DEFAULT_CONTEXT_TOKENS: u32 = 128_000;

/// How to reach a server and how patient to be.
#[derive(Debug, Clone)]
pub struct OpenAiCompatibleOptions {
    /// Base URL, with or without `/v1`.
    pub base_url: String,
    /// Key to send, if the server wants one.
    pub api_key: Option<SecretString>,
    /// Model for requests that name none.
    pub model: Option<String>,
    /// How many tokens fit into one call.
    pub context_tokens: u32,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest silence before the first and between later parts of an answer.
    pub idle_timeout: Duration,
    /// When and how often to try again.
    pub retry: RetryPolicy,
}

impl OpenAiCompatibleOptions {
    /// Defaults for a server at this base URL.
    #[must_use]
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            api_key: None,
            model: None,
            context_tokens: DEFAULT_CONTEXT_TOKENS,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            retry: RetryPolicy::default(),
        }
    }
}

/// A provider that talks to one server.
#[derive(Debug)]
pub struct OpenAiCompatible {
    transport: Arc<Transport>,
    dialect: Dialect,
    model: Option<String>,
    discovered_model: OnceCell<String>,
    context_tokens: u32,
    retry: RetryPolicy,
}

impl OpenAiCompatible {
    /// Checks the options and prepares a client; nothing is sent.
    pub fn new(options: OpenAiCompatibleOptions) -> Result<Self, ModelError> {
        let endpoint = Endpoint::parse(&options.base_url)?;
        let present = |text: &String| !text.trim().is_empty();
        // Keys come from files and shells with a line end more often than not.
        let api_key = options
            .api_key
            .filter(|key| present(key.expose()))
            .map(|key| SecretString::from(key.expose().trim().to_owned()));
        let transport = Transport::new(endpoint, api_key, options.connect_timeout, options.idle_timeout)?;
        Ok(Self {
            transport: Arc::new(transport),
            dialect: Dialect::default(),
            model: options.model.filter(present),
            discovered_model: OnceCell::new(),
            context_tokens: options.context_tokens,
            retry: options.retry,
        })
    }

    /// Where the server is, for people.
    pub(crate) fn shown_base_url(&self) -> String {
        self.transport.endpoint().shown()
    }

    /// Whether what is sent can be read on the way.
    pub(crate) fn sends_in_the_clear(&self) -> bool {
        !self.transport.endpoint().is_encrypted() && !self.transport.endpoint().is_loopback()
    }

    async fn model_for(&self, request: &ModelRequest) -> Result<String, ModelError> {
        if !request.model.is_empty() {
            return Ok(request.model.clone());
        }
        if let Some(model) = &self.model {
            return Ok(model.clone());
        }
        let discover = || async {
            let models = self.transport.models().await?;
            models.into_iter().find(|model| !model.is_empty()).ok_or_else(|| {
                ModelError::new(ModelErrorClass::Permanent, "the server offers no model; name one with OPENAI_MODEL")
            })
        };
        self.discovered_model.get_or_try_init(discover).await.cloned()
    }

    /// One try, up to the first event.
    async fn attempt(&self, request: &ModelRequest) -> Result<(ModelEvent, Answer), ModelError> {
        let model = self.model_for(request).await?;
        let names = ToolNames::for_request(request);
        let response = loop {
            let body = wire::body(request, &model, &names, &self.dialect);
            match self.transport.complete(&body).await {
                Ok(response) => break response,
                Err(refusal) if self.dialect.learn(&refusal) == Learned::Something => {}
                Err(error) => return Err(error),
            }
        };
        let mut answer = Answer::new(response, Decoder::new(names), Arc::clone(&self.transport));
        match answer.next().await {
            Some(Ok(event)) => Ok((event, answer)),
            Some(Err(error)) => Err(error),
            None => Err(ModelError::malformed("the server sent an empty answer")),
        }
    }
}

#[async_trait]
impl ModelProvider for OpenAiCompatible {
    fn name(&self) -> &str {
        NAME
    }

    fn describe(&self) -> ProviderInfo {
        let model = self.model.as_ref().or_else(|| self.discovered_model.get()).cloned().unwrap_or_default();
        ProviderInfo { name: NAME.to_owned(), model, context_tokens: self.context_tokens, is_language_model: true }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let mut attempt = 1;
        let (first, answer) = loop {
            match self.attempt(&request).await {
                Ok(started) => break started,
                Err(error) => match self.retry.wait(attempt, &error, retry::chance()) {
                    Some(wait) => sleep(wait).await,
                    None => return Err(error),
                },
            }
            attempt += 1;
        };
        let rest = stream::unfold(answer, |mut answer| async move {
            let item = answer.next().await?;
            Some((item, answer))
        });
        Ok(Box::pin(futures::StreamExt::chain(stream::iter([Ok(first)]), rest)))
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Option<Embeddings>, ModelError> {
        let mut attempt = 1;
        loop {
            match embeddings::ask(&self.transport, &request).await {
                Ok(embeddings) => return Ok(Some(embeddings)),
                Err(error) => match self.retry.wait(attempt, &error, retry::chance()) {
                    Some(wait) => sleep(wait).await,
                    None => return Err(error),
                },
            }
            attempt += 1;
        }
    }
}

/// A tool's name as servers see it.
pub(crate) fn wire_name(name: &str) -> String {
    ToolNames::default().to_wire(name)
}
