//! Google Gemini.
//!
//! `encode` writes requests with `turns` (the conversation), `series` (what a model can be told) and `names`;
//! `decode` reads the stream; `failure` knows what refusals mean; `catalogue` reads the list of models,
//! `embeddings` asks for vectors.
//!
//! The key goes into a header and never into the URL, where logs and proxies would keep it.

mod catalogue;
mod decode;
mod embeddings;
mod encode;
mod failure;
mod names;
mod series;
mod turns;

use async_trait::async_trait;
use reqwest::Url;

use self::decode::Decoder;
use self::series::Series;
use crate::attempt::Answering;
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::{ModelError, ModelErrorClass};
use crate::model_entry::ModelEntry;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::ModelRequest;
use crate::schema::name_refused_tools;
use crate::wire::{Ask, Auth, BaseUrl, HttpProviderOptions, ToolNames, Transport, TransportOptions, start};

/// Where the vendor's own server is.
const USUAL_BASE_URL: &str = "https://generativelanguage.googleapis.com";
/// What the names of models begin with.
const MODELS: &str = "models";
/// Marks the reasoning that goes back to this wire.
const ORIGIN: &str = "gemini";

/// A provider that talks to one server.
#[derive(Debug)]
pub struct Gemini {
    transport: Transport,
    options: HttpProviderOptions,
}

impl Gemini {
    /// Checks the options and prepares a client; nothing is sent.
    pub fn new(options: HttpProviderOptions) -> Result<Self, ModelError> {
        let base_url = options.base_url.as_deref().filter(|url| !url.trim().is_empty()).unwrap_or(USUAL_BASE_URL);
        let transport = Transport::new(TransportOptions {
            base: BaseUrl::parse(base_url, "/v1beta", &["/models"])?,
            auth: options.trimmed_key().map(|key| Auth::header("x-goog-api-key", key)),
            headers: Vec::new(),
            timeouts: options.timeouts,
            plaintext_key: options.plaintext_key,
            judge: failure::judge,
        })?;
        // The transport has the key; one place is enough.
        Ok(Self { transport, options: HttpProviderOptions { api_key: None, ..options } })
    }

    fn model_for(&self, request: &ModelRequest) -> Result<String, ModelError> {
        let named = Some(request.model.trim().to_owned()).filter(|model| !model.is_empty());
        named.or_else(|| self.options.present_model()).ok_or_else(|| {
            let line =
                format!("no model is named for `{}`; name one, for example `gemini-3.5-flash`", self.options.name);
            ModelError::new(ModelErrorClass::Permanent, line)
        })
    }

    /// Where a model does something.
    fn place(&self, model: &str, method: &str) -> Result<Url, ModelError> {
        Ok(self.transport.base().join(&format!("{}:{method}", full_name(model)?)))
    }
}

/// The model's name with its kind before it. It becomes part of the path, so it may hold nothing that leads elsewhere.
fn full_name(model: &str) -> Result<String, ModelError> {
    let (kind, name) = match model.split_once('/') {
        None => (MODELS, model),
        Some((kind @ (MODELS | "tunedModels"), name)) => (kind, name),
        Some(_) => return Err(no_name(model)),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(no_name(model));
    }
    Ok(format!("{kind}/{name}"))
}

fn no_name(model: &str) -> ModelError {
    ModelError::new(
        ModelErrorClass::Permanent,
        format!("`{model}` cannot be the name of a model; `palyra models list` shows names"),
    )
}

#[async_trait]
impl ModelProvider for Gemini {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn describe(&self) -> ProviderInfo {
        ProviderInfo {
            name: self.options.name.clone(),
            model: self.options.present_model().unwrap_or_default(),
            context_tokens: self.options.context_tokens,
            is_language_model: true,
        }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let model = self.model_for(&request)?;
        let names = ToolNames::for_request(&request);
        let body = encode::body(&request, &model, &names);
        let mut url = self.place(&model, "streamGenerateContent")?;
        url.query_pairs_mut().append_pair("alt", "sse");
        let ask = Ask { url, body: &body, model: &model, accept: "text/event-stream", headers: Vec::new() };
        let opened = self.transport.open(ask).await;
        let schemas = Series::of(&model).schemas();
        let answer = opened.map_err(|refusal| name_refused_tools(refusal, &request, &names, schemas))?;
        let answering =
            Answering { provider: self.options.name.clone(), model, credential: self.options.credential.clone() };
        start(answer, Decoder::new(names, failure::judge), answering).await
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Option<Embeddings>, ModelError> {
        let url = self.place(&request.model, "batchEmbedContents")?;
        embeddings::ask(&self.transport, &request, url, &full_name(&request.model)?).await.map(Some)
    }

    async fn models(&self) -> Result<Vec<ModelEntry>, ModelError> {
        catalogue::list(&self.transport).await
    }
}

/// The body of a request.
pub(crate) fn body_of(request: &ModelRequest, names: &ToolNames) -> serde_json::Value {
    encode::body(request, &request.model, names)
}
