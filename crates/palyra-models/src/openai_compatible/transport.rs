//! The HTTP client: sending one request, and saying what went wrong in terms of model errors.
//!
//! Redirects are not followed: they would carry the key and the conversation to a place nobody named. A proxy from the
//! environment is used, except towards this machine itself.

use std::error::Error;
use std::time::Duration;

use palyra_common::SecretString;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, redirect};
use serde_json::Value;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::failure;
use super::tls::install_crypto_provider;
use crate::error::{ModelError, ModelErrorClass};

/// Most bytes read of an error or a list of models.
const MAX_SMALL_BODY: usize = 1024 * 1024;
/// Most bytes read of embeddings: two thousand vectors of three thousand numbers fit.
const MAX_VECTORS: usize = 128 * 1024 * 1024;

/// A client for one server.
#[derive(Debug)]
pub(super) struct Transport {
    client: Client,
    endpoint: Endpoint,
    api_key: Option<SecretString>,
    answer_timeout: Duration,
    idle_timeout: Duration,
}

impl Transport {
    /// Prepares a client; nothing is sent.
    pub(super) fn new(
        endpoint: Endpoint,
        api_key: Option<SecretString>,
        connect_timeout: Duration,
        idle_timeout: Duration,
    ) -> Result<Self, ModelError> {
        install_crypto_provider();
        let mut headers = HeaderMap::new();
        if let Some(key) = &api_key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).map_err(|_| {
                ModelError::new(ModelErrorClass::Auth, "the API key has characters that cannot be sent in a header")
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut builder = Client::builder()
            .user_agent(concat!("palyra/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .connect_timeout(connect_timeout);
        if endpoint.is_loopback() {
            builder = builder.no_proxy();
        }
        if !endpoint.is_encrypted() {
            // Without TLS no certificates are needed; a machine that has none can still talk to a local server.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        let client = builder.build().map_err(|error| {
            ModelError::new(ModelErrorClass::Permanent, format!("cannot prepare the HTTP client: {}", cause(&error)))
        })?;
        let answer_timeout = connect_timeout.saturating_add(idle_timeout);
        Ok(Self { client, endpoint, api_key, answer_timeout, idle_timeout })
    }

    /// Where the server is.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Longest silence within an answer.
    pub(super) fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// Asks for a completion. The response is a success; its body has not been read.
    pub(super) async fn complete(&self, body: &Value) -> Result<Response, ModelError> {
        let request = self.client.post(self.endpoint.chat_completions()).header(ACCEPT, "text/event-stream").json(body);
        self.send(request).await
    }

    /// Asks for embeddings. The answer is whole and has not been understood.
    pub(super) async fn embed(&self, body: &Value) -> Result<Vec<u8>, ModelError> {
        let mut response = self.send(self.client.post(self.endpoint.embeddings()).json(body)).await?;
        self.body(&mut response, MAX_VECTORS).await
    }

    /// The names of the models that the server offers, in its order.
    pub(super) async fn models(&self) -> Result<Vec<String>, ModelError> {
        let mut response = self.send(self.client.get(self.endpoint.models())).await?;
        let body = self.small_body(&mut response).await?;
        let list: Value = serde_json::from_slice(&body)
            .map_err(|_| ModelError::malformed("the server's list of models is not JSON"))?;
        let entries = ["data", "models"]
            .iter()
            .find_map(|field| list.get(field).and_then(Value::as_array))
            .or_else(|| list.as_array())
            .ok_or_else(|| ModelError::malformed("the server's list of models has no entries"))?;
        let name = |entry: &Value| {
            let found = ["id", "name", "model"].iter().find_map(|field| entry.get(field).and_then(Value::as_str));
            found.or_else(|| entry.as_str()).map(str::to_owned)
        };
        Ok(entries.iter().filter_map(name).collect())
    }

    /// Takes the key out of what a server said.
    pub(super) fn clean(&self, error: ModelError) -> ModelError {
        failure::without_key(error, self.api_key.as_ref())
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ModelError> {
        let sent = timeout(self.answer_timeout, request.send()).await.map_err(|_| {
            let seconds = self.answer_timeout.as_secs_f32();
            let base = self.endpoint.shown();
            ModelError::new(ModelErrorClass::Timeout, format!("`{base}` did not answer within {seconds} seconds"))
        })?;
        let mut response = sent.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let header = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if status.is_redirection() {
            let target = palyra_common::RedactedUrl::new(header(LOCATION).unwrap_or("nowhere"));
            let message = format!("`{}` redirects to `{target}`, which is not followed", self.endpoint.shown());
            return Err(ModelError::new(ModelErrorClass::Permanent, message).status(status.as_u16()));
        }
        let retry_after = header(RETRY_AFTER).map(str::to_owned);
        // The status says enough even if the explanation cannot be read.
        let body = self.small_body(&mut response).await.unwrap_or_default();
        Err(self.clean(failure::from_status(status.as_u16(), &body, retry_after.as_deref())))
    }

    async fn small_body(&self, response: &mut Response) -> Result<Vec<u8>, ModelError> {
        self.body(response, MAX_SMALL_BODY).await
    }

    async fn body(&self, response: &mut Response, limit: usize) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        let read = async {
            while let Some(chunk) = response.chunk().await.map_err(broken)? {
                body.extend_from_slice(&chunk);
                if body.len() > limit {
                    let mebibytes = limit / (1024 * 1024);
                    return Err(ModelError::malformed(format!("the server's answer is larger than {mebibytes} MiB")));
                }
            }
            Ok(())
        };
        timeout(self.idle_timeout, read)
            .await
            .map_err(|_| ModelError::new(ModelErrorClass::Timeout, "the model server stopped in the middle"))??;
        Ok(body)
    }

    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        let class = if error.is_timeout() { ModelErrorClass::Timeout } else { ModelErrorClass::Network };
        let cause = cause(&error.without_url());
        ModelError::new(class, format!("cannot reach the model server at `{}`: {cause}", self.endpoint.shown()))
    }
}

/// The connection failed in the middle of an answer.
pub(super) fn broken(error: reqwest::Error) -> ModelError {
    let class = if error.is_timeout() { ModelErrorClass::Timeout } else { ModelErrorClass::Network };
    let cause = cause(&error.without_url());
    ModelError::new(class, format!("the connection to the model server broke in the middle of its answer: {cause}"))
}

/// The innermost cause, which is the one that helps.
fn cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
