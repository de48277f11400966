//! The wire of chat completions, for every provider that speaks it.
//!
//! `encode` writes requests, `decode` reads answers. Who is asked and under which name is the provider's business.

mod decode;
mod encode;

use serde_json::Value;

use self::decode::Decoder;
use self::encode::{Dialect, Learned};
use crate::attempt::Answering;
use crate::error::ModelError;
use crate::model_entry::ModelEntry;
use crate::provider::ModelStream;
use crate::request::ModelRequest;
use crate::wire::{Ask, Auth, BaseUrl, HttpProviderOptions, Judge, ToolNames, Transport, TransportOptions, start};

/// Tails of a base URL that people paste along.
pub(crate) const PASTED: &[&str] = &["/chat/completions", "/responses", "/models"];

/// A client for one server.
#[derive(Debug)]
pub(crate) struct ChatClient {
    transport: Transport,
    dialect: Dialect,
    provider: String,
    credential: Option<String>,
}

impl ChatClient {
    /// Checks the options and prepares a client; nothing is sent.
    pub(crate) fn new(
        options: &HttpProviderOptions,
        usual_base_url: &str,
        headers: Vec<(&'static str, String)>,
        judge: Judge,
    ) -> Result<Self, ModelError> {
        let base_url = options.base_url.as_deref().filter(|url| !url.trim().is_empty()).unwrap_or(usual_base_url);
        let transport = Transport::new(TransportOptions {
            base: BaseUrl::parse(base_url, "/v1", PASTED)?,
            auth: options.trimmed_key().map(Auth::bearer),
            headers,
            timeouts: options.timeouts,
            judge,
        })?;
        let dialect = Dialect::default();
        Ok(Self { transport, dialect, provider: options.name.clone(), credential: options.credential.clone() })
    }

    /// What sends.
    pub(crate) const fn transport(&self) -> &Transport {
        &self.transport
    }

    /// One call. A refusal of an optional field is no failed try: the same is asked again without it.
    pub(crate) async fn stream(&self, request: &ModelRequest, model: &str) -> Result<ModelStream, ModelError> {
        let names = ToolNames::for_request(request);
        let body = loop {
            let body = encode::body(request, model, &names, &self.dialect);
            let ask = Ask {
                url: self.transport.base().join("chat/completions"),
                body: &body,
                model,
                accept: "text/event-stream",
                headers: Vec::new(),
            };
            match self.transport.open(ask).await {
                Ok(body) => break body,
                Err(refusal) if self.dialect.learn(&refusal) == Learned::Something => {}
                Err(error) => return Err(error),
            }
        };
        let answering =
            Answering { provider: self.provider.clone(), model: model.to_owned(), credential: self.credential.clone() };
        start(body, Decoder::new(names, self.transport.judge()), answering).await
    }

    /// The models that the server offers, in its order.
    pub(crate) async fn models(&self) -> Result<Vec<ModelEntry>, ModelError> {
        let list = self.transport.get_json(self.transport.base().join("models")).await?;
        let entries = ["data", "models"]
            .iter()
            .find_map(|field| list.get(field).and_then(Value::as_array))
            .or_else(|| list.as_array())
            .ok_or_else(|| ModelError::malformed("the server's list of models has no entries"))?;
        let id = |entry: &Value| {
            let found = ["id", "name", "model"].iter().find_map(|field| entry.get(field).and_then(Value::as_str));
            found.or_else(|| entry.as_str()).map(str::to_owned)
        };
        Ok(entries.iter().filter_map(id).map(ModelEntry::named).collect())
    }
}
