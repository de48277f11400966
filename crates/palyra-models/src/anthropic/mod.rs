//! Anthropic, and any server that speaks its Messages API.
//!
//! `encode` writes requests with `turns` (the conversation), `generation` (what a model can be told), `dialect` (what it refused) and
//! `shape` (answers of a given form); `decode` reads the stream with `usage`; `failure` knows what refusals mean; `catalogue` reads the list of models.

mod catalogue;
mod decode;
mod dialect;
mod encode;
mod failure;
mod generation;
mod shape;
mod turns;
mod usage;

use async_trait::async_trait;
use serde_json::Value;

use self::decode::Decoder;
use self::dialect::{Dialect, Learned, Thoughts};
use crate::attempt::Answering;
use crate::error::{ModelError, ModelErrorClass};
use crate::model_entry::ModelEntry;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::ModelRequest;
use crate::schema::{SchemaDialect, name_refused_tools};
use crate::wire::{Ask, Auth, BaseUrl, HttpProviderOptions, ToolNames, Transport, TransportOptions, start};

/// Where the vendor's own server is.
const USUAL_BASE_URL: &str = "https://api.anthropic.com";
/// Tails of a base URL that people paste along.
const PASTED: &[&str] = &["/messages/count_tokens", "/messages", "/models"];
/// The version of the API that is spoken here.
const VERSION: &str = "2023-06-01";
/// Marks the reasoning that goes back to this wire.
const ORIGIN: &str = "anthropic";
/// Most bytes of a count.
const MAX_COUNT: usize = 64 * 1024;

/// A provider that talks to one server.
#[derive(Debug)]
pub struct Anthropic {
    transport: Transport,
    dialect: Dialect,
    options: HttpProviderOptions,
}

impl Anthropic {
    /// Checks the options and prepares a client; nothing is sent.
    pub fn new(options: HttpProviderOptions) -> Result<Self, ModelError> {
        let base_url = options.base_url.as_deref().filter(|url| !url.trim().is_empty()).unwrap_or(USUAL_BASE_URL);
        let transport = Transport::new(TransportOptions {
            base: BaseUrl::parse(base_url, "/v1", PASTED)?,
            auth: options.trimmed_key().map(|key| Auth::header("x-api-key", key)),
            headers: vec![("anthropic-version", VERSION.to_owned())],
            timeouts: options.timeouts,
            plaintext_key: options.plaintext_key,
            judge: failure::judge,
        })?;
        // The transport has the key; one place is enough.
        Ok(Self { transport, dialect: Dialect::default(), options: HttpProviderOptions { api_key: None, ..options } })
    }

    /// How many tokens a request has, as the provider itself counts them.
    pub async fn count_tokens(&self, request: &ModelRequest) -> Result<u64, ModelError> {
        let model = self.model_for(request)?;
        let encoded = encode::encode(
            request,
            &model,
            &ToolNames::for_request(request),
            self.dialect.of(&model),
            Thoughts::Given,
            self.schemas(),
        );
        let url = self.transport.base().join("messages/count_tokens");
        let answer = self.transport.post(url, &encode::for_counting(encoded), &model, MAX_COUNT).await?;
        let count =
            serde_json::from_slice::<Value>(&answer).ok().and_then(|answer| answer.get("input_tokens")?.as_u64());
        count.ok_or_else(|| ModelError::malformed("the server's count of tokens cannot be understood"))
    }

    /// What the server accepts of JSON Schema.
    fn schemas(&self) -> SchemaDialect {
        SchemaDialect::of_host(self.transport.base().host())
    }

    fn model_for(&self, request: &ModelRequest) -> Result<String, ModelError> {
        let named = Some(request.model.trim().to_owned()).filter(|model| !model.is_empty());
        named.or_else(|| self.options.present_model()).ok_or_else(|| {
            let line =
                format!("no model is named for `{}`; name one, for example `claude-sonnet-5`", self.options.name);
            ModelError::new(ModelErrorClass::Permanent, line)
        })
    }
}

#[async_trait]
impl ModelProvider for Anthropic {
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

    /// One call. A refusal of a form that another model takes is no failed try: the same is asked again in the other form.
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let model = self.model_for(&request)?;
        let names = ToolNames::for_request(&request);
        let mut thoughts = Thoughts::Given;
        loop {
            let encoded = encode::encode(&request, &model, &names, self.dialect.of(&model), thoughts, self.schemas());
            let ask = Ask {
                url: self.transport.base().join("messages"),
                body: &encoded.body,
                model: &model,
                accept: "text/event-stream",
                headers: Vec::new(),
            };
            let body = match self.transport.open(ask).await {
                Ok(body) => body,
                Err(refusal) => match self.dialect.learn(&model, &refusal, &encoded) {
                    Learned::Something => continue,
                    Learned::LeaveOutThoughts => {
                        thoughts = Thoughts::LeftOut;
                        continue;
                    }
                    Learned::Nothing => return Err(name_refused_tools(refusal, &request, &names, self.schemas())),
                },
            };
            let answering = Answering {
                provider: self.options.name.clone(),
                model: model.clone(),
                credential: self.options.credential.clone(),
            };
            return start(body, Decoder::new(names, encoded.answer_tool, failure::judge), answering).await;
        }
    }

    async fn models(&self) -> Result<Vec<ModelEntry>, ModelError> {
        catalogue::list(&self.transport).await
    }
}

/// The body of a request, as a server gets it that has refused nothing.
pub(crate) fn body_of(request: &ModelRequest, names: &ToolNames) -> Value {
    encode::encode(
        request,
        &request.model,
        names,
        dialect::Refused::default(),
        Thoughts::Given,
        SchemaDialect::Anthropic,
    )
    .body
}
