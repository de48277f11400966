//! The wire of chat completions, for every provider that speaks it.
//!
//! - `encode` writes requests with `content`, `reasoning` and `schema`; `decode` reads answers with `reasoning` and `usage`;
//! - `embeddings` asks for vectors; `habits` holds in what providers differ, `dialect` what a server has refused so far; `models` reads lists.
//!
//! Who is asked and under which name is the provider's business.

mod content;
mod decode;
mod dialect;
mod embeddings;
mod encode;
mod habits;
mod models;
mod reasoning;
mod schema;
mod usage;

use self::content::Writer;
use self::decode::Decoder;
use crate::attempt::Answering;
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::{ModelError, ModelErrorClass};
use crate::model_entry::ModelEntry;
use crate::provider::ModelStream;
use crate::request::ModelRequest;
use crate::schema::{SchemaDialect, name_refused_tools};
use crate::wire::{Ask, Auth, BaseUrl, HttpProviderOptions, ToolNames, Transport, TransportOptions, start};

pub(crate) use self::content::{arguments, data_url};
pub(crate) use self::decode::empty_answer;
pub(crate) use self::dialect::{Dialect, Lacks, Learned};
pub(crate) use self::habits::{EffortField, GiveBack, Habits, LengthField};
pub(crate) use self::models::{entry, read as read_models};
pub(crate) use self::schema::named as named_schema;
pub(crate) use self::usage::micro_usd;

/// Tails of a base URL that people paste along.
pub(crate) const PASTED: &[&str] = &["/chat/completions", "/responses", "/models"];

/// A client for one server.
#[derive(Debug)]
pub(crate) struct ChatClient {
    transport: Transport,
    habits: Habits,
    dialect: Dialect,
    provider: String,
    credential: Option<String>,
    /// Where the thoughts of its models come from and go back to.
    origin: String,
}

impl ChatClient {
    /// Checks the options and prepares a client; nothing is sent.
    pub(crate) fn new(options: &HttpProviderOptions, habits: Habits) -> Result<Self, ModelError> {
        let base_url = options.base_url.as_deref().filter(|url| !url.trim().is_empty());
        let base_url = base_url.or(Some(habits.usual_base_url).filter(|url| !url.is_empty())).ok_or_else(|| {
            let line = format!("no base URL is set for `{}`", options.name);
            ModelError::new(ModelErrorClass::Permanent, line)
        })?;
        let base = BaseUrl::parse(base_url, habits.usual_path, PASTED)?;
        let habits = Habits { schemas: SchemaDialect::of_host(base.host()), ..habits };
        let transport = Transport::new(TransportOptions {
            base,
            auth: options.trimmed_key().map(Auth::bearer),
            headers: habits.headers.clone(),
            timeouts: options.timeouts,
            plaintext_key: options.plaintext_key,
            judge: habits.judge,
        })?;
        Ok(Self {
            transport,
            habits,
            dialect: Dialect::default(),
            origin: format!("chat/{}", options.name),
            provider: options.name.clone(),
            credential: options.credential.clone(),
        })
    }

    /// What the server accepts of JSON Schema.
    pub(crate) const fn schemas(&self) -> SchemaDialect {
        self.habits.schemas
    }

    /// What sends.
    pub(crate) const fn transport(&self) -> &Transport {
        &self.transport
    }

    /// One call. A refusal of an optional field is no failed try: the same is asked again without it.
    pub(crate) async fn stream(&self, request: &ModelRequest, model: &str) -> Result<ModelStream, ModelError> {
        let names = ToolNames::for_request(request);
        let body = loop {
            let lacks = self.dialect.of(model);
            let writer = Writer { names: &names, habits: &self.habits, lacks: &lacks, origin: &self.origin, model };
            let body = encode::body(request, &writer);
            let ask = Ask {
                url: self.transport.base().join("chat/completions"),
                body: &body,
                model,
                accept: "text/event-stream",
                headers: Vec::new(),
            };
            match self.transport.open(ask).await {
                Ok(body) => break body,
                Err(refusal) if self.dialect.learn(model, &refusal) == Learned::Something => {}
                Err(error) => return Err(name_refused_tools(error, request, &names, self.habits.schemas)),
            }
        };
        let answering =
            Answering { provider: self.provider.clone(), model: model.to_owned(), credential: self.credential.clone() };
        let decoder = Decoder::new(names, self.transport.judge(), self.origin.clone(), model.to_owned());
        start(body, decoder, answering).await
    }

    /// Asks for vectors.
    pub(crate) async fn embed(&self, request: &EmbeddingRequest) -> Result<Embeddings, ModelError> {
        embeddings::ask(&self.transport, request).await
    }

    /// The models that the server offers, in its order.
    pub(crate) async fn models(
        &self,
        entry: fn(&serde_json::Value) -> Option<ModelEntry>,
    ) -> Result<Vec<ModelEntry>, ModelError> {
        read_models(&self.transport.get_json(self.transport.base().join("models")).await?, entry)
    }

    /// The window that a llama.cpp server was started with; others do not say.
    pub(crate) async fn window_of_server(&self) -> Option<u32> {
        let props = self.transport.get_json(self.transport.base().beside("props")).await.ok()?;
        let tokens = props.pointer("/default_generation_settings/n_ctx")?.as_u64()?;
        u32::try_from(tokens).ok().filter(|tokens| *tokens > 0)
    }
}

/// The body of a request, as a server gets it that has refused nothing.
pub(crate) fn body_of(request: &ModelRequest, names: &ToolNames) -> serde_json::Value {
    let (habits, lacks) = (Habits::default(), std::collections::BTreeSet::new());
    encode::body(request, &Writer { names, habits: &habits, lacks: &lacks, origin: "", model: &request.model })
}
