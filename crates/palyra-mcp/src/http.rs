//! The protocol over HTTP, bounded while reading.
//!
//! The SDK drives the exchange; this file is the one place that opens connections for it. It adds what the SDK's own client lacks: a
//! limit on plain JSON answers, no redirects (a secret header must not travel to another place), and an error for the request whose
//! answer is too large, so that its caller is told at once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::{HeaderName, HeaderValue, StatusCode};
use palyra_common::Environment;
use reqwest::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use rustls::crypto::{CryptoProvider, ring};
use sse_stream::{Error as SseError, Sse, SseStream};

use crate::config::{header_name, is_loopback};
use crate::handler::Shared;
use crate::{HttpConfig, McpError, McpOptions};

/// How much of a refusal is read: it is a sentence, not a document.
const MAX_REFUSAL: usize = 64 << 10;

/// How often a broken stream of events is taken up again.
const STREAM_RETRIES: usize = 5;

pub(crate) type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A transport to the configured address. Opens no connection yet.
pub(crate) fn transport(
    config: &HttpConfig,
    environment: &Environment,
    options: &McpOptions,
    shared: Arc<Shared>,
) -> Result<StreamableHttpClientTransport<BoundedClient>, McpError> {
    let url = config.parsed_url()?;
    if CryptoProvider::get_default().is_none() {
        // Losing a race to another thread leaves a provider installed, which is all that is wanted.
        let _ = ring::default_provider().install_default();
    }
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("palyra/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(options.connect_timeout);
    if is_loopback(&url) {
        builder = builder.no_proxy();
    }
    if url.scheme() != "https" {
        // Without TLS no certificates are needed; a machine that has none can still talk to a local server.
        builder = builder.tls_certs_only(std::iter::empty());
    }
    let client = builder.build().map_err(|error| McpError::Internal { reason: error.to_string() })?;
    let mut protocol = StreamableHttpClientTransportConfig::with_uri(url.as_str().to_owned())
        .custom_headers(secret_headers(config, environment)?)
        .max_sse_event_size(options.output_bytes)
        .control_request_timeout(Duration::from_secs(2));
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(STREAM_RETRIES);
    protocol.retry_config = Arc::new(retries);
    let client = BoundedClient { client, shared, limit: options.output_bytes };
    Ok(StreamableHttpClientTransport::with_client(client, protocol))
}

fn secret_headers(config: &HttpConfig, environment: &Environment) -> Result<Headers, McpError> {
    let mut headers = Headers::new();
    for (name, reference) in &config.headers {
        let header = header_name(name)?;
        let secret = reference.resolve(environment)?;
        let secret = secret.expose();
        // A bare token is what people have; the scheme in front of it is what servers want.
        let text: Cow<'_, str> = if header == http::header::AUTHORIZATION && !secret.contains(' ') {
            Cow::Owned(format!("Bearer {secret}"))
        } else {
            Cow::Borrowed(secret)
        };
        let mut value = HeaderValue::from_str(&text).map_err(|_| McpError::HeaderInvalid {
            name: name.clone(),
            reason: "its secret contains characters that are not allowed in a header",
        })?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

/// An HTTP client that never reads more than a limit.
#[derive(Clone)]
pub(crate) struct BoundedClient {
    client: reqwest::Client,
    shared: Arc<Shared>,
    limit: usize,
}

impl BoundedClient {
    fn too_large(&self, id: RequestId) -> ServerJsonRpcMessage {
        self.shared.note_oversized(id.clone());
        ServerJsonRpcMessage::error(ErrorData::internal_error("the answer is too large", None), Some(id))
    }

    /// The events of an answer, each within the limit; one beyond it becomes an error for the request, and the stream ends.
    fn events(
        &self,
        response: reqwest::Response,
        request: Option<RequestId>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let limiter = EventLimiter { limit: self.limit, size: 0, line: 0, after_return: false };
        let bytes = response.bytes_stream().scan(limiter, |limiter, chunk| {
            let bounded = match chunk {
                Ok(bytes) if limiter.admits(&bytes) => Ok(bytes),
                Ok(_) => Err(EventError::TooLarge),
                Err(error) => Err(EventError::Broken(error)),
            };
            futures::future::ready(Some(bounded))
        });
        let this = self.clone();
        let events = SseStream::from_bytes_stream(Box::pin(bytes));
        let state = Some((events, request));
        stream::unfold(state, move |state| {
            let this = this.clone();
            async move {
                let (mut events, request) = state?;
                let event = events.next().await?;
                if matches!(&event, Err(SseError::Body(cause)) if cause.downcast_ref::<EventError>().is_some_and(EventError::is_too_large))
                    && let Some(id) = request
                {
                    let error = serde_json::to_string(&this.too_large(id)).unwrap_or_default();
                    return Some((Ok(Sse::default().data(error)), None));
                }
                this.shared.note_received();
                Some((event, Some((events, request))))
            }
        })
        .boxed()
    }

    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let mut request = self.client.post(uri.as_ref()).header(ACCEPT, "text/event-stream, application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let has_session = session.is_some();
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, session.as_ref());
        }
        let response = request.json(&message).send().await.map_err(StreamableHttpError::Client)?;
        let status = response.status();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let challenge = header(WWW_AUTHENTICATE.as_str()).unwrap_or_default();
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = header(HEADER_SESSION_ID);
        let kind = header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let retry_after = header(RETRY_AFTER.as_str()).filter(|value| value.len() <= 64);
        let wanted = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request),
            _ => None,
        };
        if !status.is_success() {
            let (body, _) = read(response, MAX_REFUSAL).await.map_err(StreamableHttpError::Client)?;
            let refusal = match serde_json::from_slice(&body) {
                Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
                _ => None,
            };
            if let Some(request) = wanted
                && status.is_client_error()
                && (refusal.is_some() || matches!(request.request, ClientRequest::DiscoverRequest(_)))
            {
                // An older server, or a gateway before it, refuses the probe in its own words and without its id.
                let error = refusal
                    .unwrap_or_else(|| ErrorData::invalid_request(format!("refused with HTTP status {status}"), None));
                return Ok(StreamableHttpPostResponse::Json(
                    ServerJsonRpcMessage::error(error, Some(request.id.clone())),
                    session,
                ));
            }
            return Err(HttpStatusError::new(status.as_u16(), retry_after).into());
        }
        if kind.starts_with(EVENT_STREAM_MIME_TYPE) {
            let id = wanted.map(|request| request.id.clone());
            return Ok(StreamableHttpPostResponse::Sse(self.events(response, id), session));
        }
        let Some(request) = wanted else {
            // Nobody waits for what is said to a notification.
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if !kind.starts_with(JSON_MIME_TYPE) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(crate::error::quoted(&kind))));
        }
        let (body, whole) = read(response, self.limit).await.map_err(StreamableHttpError::Client)?;
        self.shared.note_received();
        let message = if whole { serde_json::from_slice(&body)? } else { self.too_large(request.id.clone()) };
        Ok(StreamableHttpPostResponse::Json(message, session))
    }
}

/// The body up to a limit, and whether that is all of it.
async fn read(mut response: reqwest::Response, limit: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Ok((body, false));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, true))
}

/// Why a stream of events broke off.
#[derive(Debug, thiserror::Error)]
enum EventError {
    #[error("an event is too large")]
    TooLarge,
    #[error(transparent)]
    Broken(reqwest::Error),
}

impl EventError {
    const fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge)
    }
}

/// Counts the bytes of the present event; an empty line ends it.
struct EventLimiter {
    limit: usize,
    size: usize,
    line: usize,
    after_return: bool,
}

impl EventLimiter {
    fn admits(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            let ends_line = match byte {
                b'\n' if self.after_return => {
                    self.after_return = false;
                    continue;
                }
                b'\r' | b'\n' => true,
                _ => false,
            };
            self.after_return = *byte == b'\r';
            if !ends_line {
                self.line += 1;
                self.size += 1;
            } else if self.line == 0 {
                self.size = 0;
            } else {
                self.line = 0;
            }
            if self.size > self.limit {
                return false;
            }
        }
        true
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.post(uri, message, session, headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        let mut request = self.client.delete(uri.as_ref()).header(HEADER_SESSION_ID, session.as_ref());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // A server may refuse to forget a session early; it forgets it in time.
        request.send().await.map_err(StreamableHttpError::Client)?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        // Nothing of the protocol's headers is validated again here: they are the SDK's own.
        let mut request = self.client.get(uri.as_ref()).header(ACCEPT, EVENT_STREAM_MIME_TYPE);
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, session.as_ref());
        }
        if let Some(last_event) = last_event {
            request = request.header("last-event-id", last_event);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let response = request.send().await.map_err(StreamableHttpError::Client)?;
        let status = response.status();
        if !status.is_success() {
            return Err(match status {
                StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND => StreamableHttpError::ServerDoesNotSupportSse,
                status => HttpStatusError::new(status.as_u16(), None).into(),
            });
        }
        let kind =
            response.headers().get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
        if !kind.as_deref().unwrap_or_default().starts_with(EVENT_STREAM_MIME_TYPE) {
            return Err(StreamableHttpError::UnexpectedContentType(kind.map(|kind| crate::error::quoted(&kind))));
        }
        Ok(self.events(response, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_counted_by_itself() {
        let limiter = || EventLimiter { limit: 10, size: 0, line: 0, after_return: false };
        for good in ["data: 1234\n\ndata: 1234\n\n", "data: 1234\r\n\r\ndata: 1234\r\n\r\n", "data: 1\r\rdata: 12\r\r"]
        {
            let mut whole = limiter();
            assert!(whole.admits(good.as_bytes()), "{good:?}");
            let mut single = limiter();
            assert!(good.bytes().all(|byte| single.admits(&[byte])), "{good:?}");
        }
        for bad in ["data: 12345\n\n", "data: 1\ndata: 2\n\n", ": keep-alive, and far too long"] {
            assert!(!limiter().admits(bad.as_bytes()), "{bad:?}");
        }
    }
}
