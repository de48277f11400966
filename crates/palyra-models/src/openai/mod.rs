//! OpenAI itself.
//!
//! The Responses API is spoken unless Chat Completions are asked for: only the former gives a model's thoughts back to it. Nothing is
//! kept at the provider: every request carries the whole conversation, thoughts sealed. `encode` writes requests, `decode` reads
//! answers with `items`, `judge` knows the refusals; the other wire is `chat`. See `COVERAGE.md` beside the fixtures for every event.

mod decode;
mod encode;
mod items;
mod judge;

use async_trait::async_trait;
use palyra_common::runtime_contract_enum;
use serde_json::{Map, Value};

use self::decode::Decoder;
use crate::attempt::Answering;
use crate::chat::{self, ChatClient, Dialect, Habits, Learned, LengthField};
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::{ModelError, ModelErrorClass};
use crate::model_entry::ModelEntry;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::ModelRequest;
use crate::schema::{SchemaDialect, name_refused_tools};
use crate::wire::{Ask, HttpProviderOptions, ToolNames, start};

/// Where OpenAI is.
const BASE_URL: &str = "https://api.openai.com/v1";

runtime_contract_enum! {
    /// Which of its two APIs is spoken with OpenAI.
    pub enum OpenAiApi("openai_api") {
        /// The newer one, which keeps thoughts between turns.
        Responses = "responses",
        /// The older one, which other servers have copied.
        ChatCompletions = "chat_completions" | "chat",
    }
}

/// OpenAI, or a server that speaks its Responses API.
#[derive(Debug)]
pub struct OpenAi {
    chat: ChatClient,
    api: OpenAiApi,
    dialect: Dialect,
    provider: String,
    credential: Option<String>,
    model: Option<String>,
    context_tokens: u32,
}

impl OpenAi {
    /// Checks the options and prepares a client for the Responses API; nothing is sent.
    pub fn new(options: HttpProviderOptions) -> Result<Self, ModelError> {
        Self::with_api(options, OpenAiApi::Responses)
    }

    /// The same for either API.
    pub fn with_api(options: HttpProviderOptions, api: OpenAiApi) -> Result<Self, ModelError> {
        let habits = Habits {
            usual_base_url: BASE_URL,
            judge: judge::judge,
            length: LengthField::MaxCompletionTokens,
            finish: cache_key,
            ..Habits::default()
        };
        Ok(Self {
            chat: ChatClient::new(&options, habits)?,
            api,
            dialect: Dialect::default(),
            model: options.present_model(),
            context_tokens: options.context_tokens,
            provider: options.name,
            credential: options.credential,
        })
    }

    async fn respond(&self, request: &ModelRequest, model: &str) -> Result<ModelStream, ModelError> {
        let transport = self.chat.transport();
        let names = ToolNames::for_request(request);
        let answer = loop {
            let lacks = self.dialect.of(model);
            let body = encode::body(request, model, &names, &lacks, self.chat.schemas());
            let url = transport.base().join("responses");
            let ask = Ask { url, body: &body, model, accept: "text/event-stream", headers: Vec::new() };
            match transport.open(ask).await {
                Ok(answer) => break answer,
                Err(refusal) if self.dialect.learn(model, &refusal) == Learned::Something => {}
                Err(error) => return Err(name_refused_tools(error, request, &names, self.chat.schemas())),
            }
        };
        let (provider, credential) = (self.provider.clone(), self.credential.clone());
        let answering = Answering { provider, model: model.to_owned(), credential };
        start(answer, Decoder::new(names, transport.judge(), model.to_owned()), answering).await
    }
}

/// Requests of one run begin alike; the key lets the provider find what it has at the ready for them.
fn cache_key(body: &mut Map<String, Value>, request: &ModelRequest, _model: &str) {
    body.insert("prompt_cache_key".to_owned(), request.run_id.to_string().into());
}

#[async_trait]
impl ModelProvider for OpenAi {
    fn name(&self) -> &str {
        &self.provider
    }

    fn describe(&self) -> ProviderInfo {
        ProviderInfo {
            name: self.provider.clone(),
            model: self.model.clone().unwrap_or_default(),
            context_tokens: self.context_tokens,
            is_language_model: true,
        }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let named = Some(request.model.as_str()).filter(|model| !model.is_empty()).or(self.model.as_deref());
        let model = named.map(str::to_owned).ok_or_else(|| no_model(&self.provider))?;
        match self.api {
            OpenAiApi::Responses => self.respond(&request, &model).await,
            OpenAiApi::ChatCompletions => self.chat.stream(&request, &model).await,
        }
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Option<Embeddings>, ModelError> {
        self.chat.embed(&request).await.map(Some)
    }

    async fn models(&self) -> Result<Vec<ModelEntry>, ModelError> {
        self.chat.models(chat::entry).await
    }
}

/// Nobody said which model to use.
pub(crate) fn no_model(provider: &str) -> ModelError {
    let line = format!("no model is chosen for `{provider}`; `palyra models list` shows what it offers");
    ModelError::new(ModelErrorClass::Permanent, line)
}

/// The body of a Responses request, as a server gets it that has refused nothing.
pub(crate) fn body_of(request: &ModelRequest, names: &ToolNames) -> Value {
    encode::body(request, &request.model, names, &std::collections::BTreeSet::new(), SchemaDialect::OpenAi)
}
