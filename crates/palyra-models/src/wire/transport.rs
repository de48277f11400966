//! The HTTP client: sending one request, and saying what went wrong in terms of model errors.
//!
//! Redirects are not followed: they would carry the key and the conversation to a place nobody named. A proxy from the environment
//! is used, except towards this machine itself.
//!
//! Connections are kept for the next call. A server may give one up at the very moment at which a request is sent on it; such a
//! request was never read, and goes out once more on another connection. That is the only case in which anything is sent twice.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use palyra_common::{RedactedUrl, SecretString};
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, RequestBuilder, Response, Url, redirect};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::body::{ByteBody, Phase, late};
use super::endpoint::BaseUrl;
use super::failure::{self, Asked, Judge};
use super::mask::Mask;
use super::options::{PlaintextKey, Timeouts};
use super::retry_after;
use super::tls::install_crypto_provider;
use crate::error::{ModelError, ModelErrorClass};

/// Most bytes read of an error.
const MAX_REFUSAL: usize = 1024 * 1024;
/// Most bytes read of a list of models; the longest that is known takes one and a half megabytes.
const MAX_LIST: usize = 32 * 1024 * 1024;

/// How a key is sent.
#[derive(Debug, Clone)]
pub(crate) struct Auth {
    header: &'static str,
    prefix: &'static str,
    key: SecretString,
}

impl Auth {
    /// `Authorization: Bearer …`.
    pub(crate) const fn bearer(key: SecretString) -> Self {
        Self { header: "authorization", prefix: "Bearer ", key }
    }

    /// A header that holds the key and nothing else.
    pub(crate) const fn header(name: &'static str, key: SecretString) -> Self {
        Self { header: name, prefix: "", key }
    }
}

/// What a client for one server needs.
#[derive(Debug)]
pub(crate) struct TransportOptions {
    /// Where the server is.
    pub base: BaseUrl,
    /// The key.
    pub auth: Option<Auth>,
    /// Headers that go with every request, without secrets.
    pub headers: Vec<(&'static str, String)>,
    /// How patient to be.
    pub timeouts: Timeouts,
    /// Whether the key may be sent where everybody on the way can read it.
    pub plaintext_key: PlaintextKey,
    /// What the vendor knows about its refusals.
    pub judge: Judge,
}

/// One request for a streamed answer.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    /// Where it goes.
    pub url: Url,
    /// What is asked.
    pub body: &'a Value,
    /// The model, for messages.
    pub model: &'a str,
    /// The content type that is wished for.
    pub accept: &'static str,
    /// Headers of this request alone, without secrets.
    pub headers: Vec<(&'static str, String)>,
}

/// A client for one server.
#[derive(Debug)]
pub(crate) struct Transport {
    client: Client,
    base: BaseUrl,
    mask: Mask,
    timeouts: Timeouts,
    judge: Judge,
    /// Whether an earlier call has left a connection behind.
    kept: Arc<AtomicBool>,
}

impl Transport {
    /// Prepares a client; nothing is sent.
    pub(crate) fn new(options: TransportOptions) -> Result<Self, ModelError> {
        let TransportOptions { base, auth, headers, timeouts, plaintext_key, judge } = options;
        if auth.is_some() && plaintext_key == PlaintextKey::Refused && !base.is_encrypted() && !base.is_loopback() {
            let line = format!(
                "the key is not sent to `{}` over plain HTTP, where everybody on the way can read it: use https, or set `allow_plaintext_key = true` for this provider in models.toml",
                base.shown()
            );
            return Err(ModelError::new(ModelErrorClass::Permanent, line).not_sent());
        }
        install_crypto_provider();
        let mut all = header_map(&headers)?;
        if let Some(Auth { header, prefix, key }) = &auth {
            let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.expose())).map_err(|_| {
                ModelError::new(ModelErrorClass::Auth, "the API key has characters that cannot be sent in a header")
            })?;
            value.set_sensitive(true);
            all.insert(HeaderName::from_static(header), value);
        }
        let mut builder = Client::builder()
            .user_agent(concat!("palyra/", env!("CARGO_PKG_VERSION")))
            .default_headers(all)
            .redirect(redirect::Policy::none())
            .connect_timeout(timeouts.connect);
        if base.is_loopback() {
            builder = builder.no_proxy();
        }
        if !base.is_encrypted() {
            // Without TLS no certificates are needed; a machine that has none can still talk to a local server.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        let client = builder.build().map_err(|error| {
            ModelError::new(ModelErrorClass::Permanent, format!("cannot prepare the HTTP client: {}", cause(&error)))
        })?;
        Ok(Self { client, base, mask: Mask::new(auth.map(|auth| auth.key)), timeouts, judge, kept: Arc::default() })
    }

    /// Where the server is.
    pub(crate) const fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// What the vendor knows about its refusals.
    pub(crate) const fn judge(&self) -> Judge {
        self.judge
    }

    /// Sends a request whose answer is read as it arrives. The answer is a success; its body has not been read.
    pub(crate) async fn open(&self, ask: Ask<'_>) -> Result<ByteBody, ModelError> {
        let request = self.client.post(ask.url).header(ACCEPT, ask.accept).headers(header_map(&ask.headers)?);
        self.send(request.json(ask.body), ask.model).await
    }

    /// Sends a request whose answer is one document of at most so many bytes.
    pub(crate) async fn post(&self, url: Url, body: &Value, model: &str, limit: usize) -> Result<Vec<u8>, ModelError> {
        let answer = self.send(self.client.post(url).json(body), model).await?;
        answer.whole(limit).await.map_err(|error| self.mask.clean(error))
    }

    /// Asks for a JSON document.
    pub(crate) async fn get_json(&self, url: Url) -> Result<Value, ModelError> {
        let answer = self.send(self.client.get(url), "").await?;
        let whole = answer.whole(MAX_LIST).await.map_err(|error| self.mask.clean(error))?;
        serde_json::from_slice(&whole).map_err(|_| {
            let server = self.base.shown();
            let line = format!("`{server}` is not a model server: it did not answer with JSON; check the base URL");
            ModelError::new(ModelErrorClass::Permanent, line)
        })
    }

    async fn send(&self, request: RequestBuilder, model: &str) -> Result<ByteBody, ModelError> {
        let begun = Instant::now();
        let Timeouts { first_byte, total, .. } = self.timeouts;
        let (patience, phase) =
            if total < first_byte { (total, Phase::Total(total)) } else { (first_byte, Phase::FirstByte(first_byte)) };
        let once_more = if self.kept.swap(false, Ordering::AcqRel) { request.try_clone() } else { None };
        let sending = async {
            match (request.send().await, once_more) {
                (Err(error), Some(once_more)) if was_given_up(&error) => once_more.send().await,
                (sent, _) => sent,
            }
        };
        let sent = timeout_at(begun + patience, sending).await.map_err(|_| late(phase))?;
        let response = sent.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        if status.is_redirection() {
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let target = RedactedUrl::new(location.unwrap_or("nowhere"));
            let line = format!("`{}` redirects to `{target}`, which is not followed", self.base.shown());
            return Err(ModelError::new(ModelErrorClass::Permanent, line).status(status.as_u16()));
        }
        let asked_to_wait = retry_after::from_headers(response.headers(), SystemTime::now());
        let body = self.body(response, begun);
        if status.is_success() {
            return Ok(body);
        }
        // The status says enough even if the explanation cannot be read, or was packed although nobody asked for that.
        let refusal = match body.packing().as_str() {
            "" => body.whole(MAX_REFUSAL).await.unwrap_or_default(),
            _ => Vec::new(),
        };
        let server = self.base.shown();
        let asked = Asked { server: &server, model };
        let error = failure::from_status(asked, status.as_u16(), &refusal, asked_to_wait, self.judge);
        Err(self.mask.clean(error))
    }

    fn body(&self, response: Response, begun: Instant) -> ByteBody {
        let kept = Arc::clone(&self.kept);
        ByteBody::new(response, self.timeouts, begun, self.base.shown(), self.mask.clone(), kept)
    }

    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        if error.is_timeout() {
            return late(Phase::Connect(self.timeouts.connect)).not_sent();
        }
        let never_connected = error.is_connect();
        let cause = cause(&error.without_url());
        let line = format!("cannot reach the model server at `{}`: {cause}", self.base.shown());
        let error = ModelError::new(ModelErrorClass::Network, line);
        if never_connected { error.not_sent() } else { error }
    }
}

/// Whether a connection ended before a word of the answer, as one does that had been given up before.
fn was_given_up(error: &reqwest::Error) -> bool {
    error.is_request() && !error.is_connect() && !error.is_timeout()
}

/// Headers as the client wants them.
fn header_map(headers: &[(&'static str, String)]) -> Result<HeaderMap, ModelError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).map_err(|_| {
            let line = format!("the header `{name}` has characters that cannot be sent");
            ModelError::new(ModelErrorClass::Permanent, line)
        })?;
        map.insert(HeaderName::from_static(name), value);
    }
    Ok(map)
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
