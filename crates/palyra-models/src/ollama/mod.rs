//! Ollama: models on the own machine, or a server of one's own.
//!
//! `encode` writes requests, `decode` reads the lines of an answer, `failure` knows what refusals mean, `catalogue` reads
//! which models are there, `embeddings` asks for vectors. When no model is named, the server is asked once and the one used last is taken.

mod catalogue;
mod decode;
mod embeddings;
mod encode;
mod failure;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::OnceCell;

use self::decode::Decoder;
use self::encode::Thinking;
use crate::attempt::Answering;
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::{ModelError, ModelErrorClass};
use crate::model_entry::ModelEntry;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::ModelRequest;
use crate::schema::name_refused_tools;
use crate::wire::{Ask, Auth, BaseUrl, HttpProviderOptions, ToolNames, Transport, TransportOptions, start};

/// Where the server usually is.
const USUAL_BASE_URL: &str = "http://127.0.0.1:11434";
/// Tails of a base URL that people paste along; `/v1` is its other wire.
const PASTED: &[&str] = &["/api/chat", "/api/tags", "/api", "/v1"];
/// Marks the reasoning that goes back to this wire.
const ORIGIN: &str = "ollama";

/// A provider that talks to one server.
#[derive(Debug)]
pub struct Ollama {
    transport: Transport,
    options: HttpProviderOptions,
    discovered_model: OnceCell<String>,
    /// Models that refused to be told about thinking.
    thoughtless: Mutex<BTreeSet<String>>,
}

impl Ollama {
    /// A window that most machines can hold, for when nobody said: the server reserves memory for all of it.
    pub const USUAL_CONTEXT_TOKENS: u32 = 16_384;

    /// Checks the options and prepares a client; nothing is sent.
    pub fn new(options: HttpProviderOptions) -> Result<Self, ModelError> {
        let base_url = options.base_url.as_deref().filter(|url| !url.trim().is_empty()).unwrap_or(USUAL_BASE_URL);
        let transport = Transport::new(TransportOptions {
            base: BaseUrl::parse(base_url, "", PASTED)?,
            auth: options.trimmed_key().map(Auth::bearer),
            headers: Vec::new(),
            timeouts: options.timeouts,
            plaintext_key: options.plaintext_key,
            judge: failure::judge,
        })?;
        // The transport has the key; one place is enough.
        let options = HttpProviderOptions { api_key: None, ..options };
        Ok(Self { transport, options, discovered_model: OnceCell::new(), thoughtless: Mutex::default() })
    }

    /// What the server says about a model: its window and what it can do.
    pub async fn show(&self, model: &str) -> Result<ModelEntry, ModelError> {
        catalogue::show(&self.transport, model).await
    }

    async fn model_for(&self, request: &ModelRequest) -> Result<String, ModelError> {
        let named = Some(request.model.trim().to_owned()).filter(|model| !model.is_empty());
        if let Some(model) = named.or_else(|| self.options.present_model()) {
            return Ok(model);
        }
        let discover = || async {
            catalogue::names(&self.transport).await?.into_iter().next().ok_or_else(|| {
                let line =
                    "the Ollama server has no model yet; get one with `ollama pull`, for example `ollama pull qwen3`";
                ModelError::new(ModelErrorClass::Permanent, line)
            })
        };
        self.discovered_model.get_or_try_init(discover).await.cloned()
    }

    fn thinking(&self, model: &str) -> Thinking {
        let thoughtless = self.thoughtless.lock().unwrap_or_else(PoisonError::into_inner);
        if thoughtless.contains(model) { Thinking::MayNot } else { Thinking::May }
    }

    /// Whether the refusal says that this model cannot be told about thinking, and that was not known.
    fn learns(&self, model: &str, refusal: &ModelError) -> bool {
        refusal.status == Some(400)
            && refusal.message.contains("does not support thinking")
            && self.thoughtless.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned())
    }
}

#[async_trait]
impl ModelProvider for Ollama {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn describe(&self) -> ProviderInfo {
        let model = self.options.present_model().or_else(|| self.discovered_model.get().cloned()).unwrap_or_default();
        ProviderInfo {
            name: self.options.name.clone(),
            model,
            context_tokens: self.options.context_tokens,
            is_language_model: true,
        }
    }

    /// One call. A model that cannot be told about thinking is no failed try: it is asked again without.
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let model = self.model_for(&request).await?;
        let names = ToolNames::for_request(&request);
        let answer = loop {
            let thinking = self.thinking(&model);
            let body = encode::body(&request, &model, &names, self.options.context_tokens, thinking);
            let ask = Ask {
                url: self.transport.base().join("api/chat"),
                body: &body,
                model: &model,
                accept: "application/x-ndjson",
                headers: Vec::new(),
            };
            match self.transport.open(ask).await {
                Ok(answer) => break answer,
                Err(refusal) if self.learns(&model, &refusal) => {}
                Err(refusal) => {
                    let refusal = name_refused_tools(refusal, &request, &names, encode::SCHEMAS);
                    return Err(advised(refusal, &model));
                }
            }
        };
        let answering =
            Answering { provider: self.options.name.clone(), model, credential: self.options.credential.clone() };
        start(answer, Decoder::new(names, failure::judge), answering).await
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Option<Embeddings>, ModelError> {
        let made = embeddings::ask(&self.transport, &request).await;
        made.map(Some).map_err(|refusal| advised(refusal, &request.model))
    }

    async fn models(&self) -> Result<Vec<ModelEntry>, ModelError> {
        catalogue::list(&self.transport).await
    }
}

/// Says what to do about the commonest refusal: the model was never fetched.
fn advised(mut refusal: ModelError, model: &str) -> ModelError {
    if refusal.message.contains("does not offer the model") {
        refusal.message = format!("{}; get it with `ollama pull {model}`", refusal.message);
    }
    refusal
}

/// The body of a request, as a server gets it that has refused nothing.
pub(crate) fn body_of(request: &ModelRequest, names: &ToolNames) -> serde_json::Value {
    encode::body(request, &request.model, names, 0, Thinking::default())
}
