//! One fetch: from a request as a tool states it to an answer that is whole, decoded and within its limits.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, USER_AGENT,
};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use super::cache::{CacheKey, CacheStore, CachedAnswer, MemoryCache, Storable};
use super::coding;
use super::redirect::follow;
use crate::egress::Egress;
use crate::error::EgressError;
use crate::log::Via;
use crate::outbound::{BoxError, OutBody, Outgoing, egress_error_of, empty, exchange, full};
use crate::rules::{EgressGrant, Request, Verdict, check};
use crate::target::Target;

/// Redirects that are followed unless the request says less.
const REDIRECT_LIMIT: usize = 5;

/// Whether an answer may come from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheMode {
    /// As the answer's own headers allow.
    #[default]
    Use,
    /// Never; the answer is not kept either.
    Bypass,
}

/// What is to be fetched.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// The method, in capitals.
    pub method: String,
    /// The address.
    pub url: String,
    /// Headers, apart from those that belong to the connection.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Bytes,
    /// Whether the cache may answer.
    pub cache: CacheMode,
    /// How many redirects are followed, at most 5.
    pub max_redirects: usize,
}

impl FetchRequest {
    /// A request with this method and no body.
    #[must_use]
    pub fn new(method: &str, url: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            url: url.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            cache: CacheMode::Use,
            max_redirects: REDIRECT_LIMIT,
        }
    }

    /// `GET`
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }
}

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// From the host.
    Network,
    /// From the cache; the host said that it is still current.
    Revalidated,
    /// From the cache, without asking the host.
    Cache,
}

/// What was fetched.
#[derive(Debug, Clone)]
pub struct FetchResponse {
    /// The status.
    pub status: u16,
    /// The address that answered, after redirects, without a fragment.
    pub url: String,
    /// The addresses that redirected, in order.
    pub redirects: Vec<String>,
    /// The answer's headers, hop-by-hop ones and the content coding left out.
    pub headers: Vec<(String, String)>,
    /// The decoded body.
    pub body: Bytes,
    /// Where it came from.
    pub served: Served,
    /// The address that was connected to.
    pub address: Option<IpAddr>,
}

impl FetchResponse {
    /// A header of the answer, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// The media type with its parameters.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.header("content-type")
    }
}

/// Fetches under a grant. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct EgressClient {
    egress: Egress,
    cache: Arc<dyn CacheStore>,
}

impl EgressClient {
    pub(crate) fn new(egress: Egress) -> Self {
        Self { egress, cache: Arc::new(MemoryCache::default()) }
    }

    /// The same client with another place for its cache.
    #[must_use]
    pub fn with_cache(mut self, cache: Arc<dyn CacheStore>) -> Self {
        self.cache = cache;
        self
    }

    /// Fetches: checks, follows redirects, decodes, all within the grant's limits.
    pub async fn send(&self, grant: &EgressGrant, request: FetchRequest) -> Result<FetchResponse, EgressError> {
        grant.validate()?;
        let limit = grant.limits.time();
        let deadline = Instant::now() + limit;
        tokio::time::timeout_at(deadline, self.send_until(grant, request, deadline))
            .await
            .unwrap_or(Err(EgressError::TimedOut { what: "the whole exchange", limit }))
    }

    async fn send_until(
        &self,
        grant: &EgressGrant,
        request: FetchRequest,
        deadline: Instant,
    ) -> Result<FetchResponse, EgressError> {
        let mut step = Step::new(&request)?;
        let mut redirects = Vec::new();
        let most = request.max_redirects.min(REDIRECT_LIMIT);
        loop {
            let mut answer = self.step(grant, &step, request.cache, deadline).await?;
            let next = answer.header(LOCATION.as_str()).and_then(|location| follow(&step, answer.status, location));
            let Some(next) = next else {
                answer.redirects = redirects;
                return Ok(answer);
            };
            if redirects.len() >= most {
                return Err(EgressError::TooManyRedirects { limit: most });
            }
            redirects.push(step.target.url());
            step = next?;
        }
    }

    /// One request of a chain.
    async fn step(
        &self,
        grant: &EgressGrant,
        step: &Step,
        mode: CacheMode,
        deadline: Instant,
    ) -> Result<FetchResponse, EgressError> {
        // Asked before the cache is: what was fetched under another grant is not for this one.
        if let Verdict::Refused(refusal) = check(grant, &Request::visible(&step.target, step.method.as_str())) {
            let error = EgressError::Refused(refusal);
            let mut record = self.egress.open_record(grant, Via::Client);
            record.goes_to(Some(step.target.scheme), &step.target.host, step.target.port);
            record.asks(step.method.as_str(), &step.target.path);
            record.ended(&error);
            return Err(error);
        }
        let key = match mode {
            CacheMode::Use => CacheKey::of(step, grant),
            CacheMode::Bypass => None,
        };
        let cached = match &key {
            Some(key) => self.cache.get(key.as_str()).await,
            None => None,
        };
        let now = self.egress.parts().clock.now();
        if let Some(cached) = cached.as_ref().filter(|cached| cached.is_fresh(now)) {
            let mut record = self.egress.open_record(grant, Via::Client);
            record.goes_to(Some(step.target.scheme), &step.target.host, step.target.port);
            record.asks(step.method.as_str(), &step.target.path);
            record.edit().status = Some(cached.status);
            return Ok(cached.to_response(&step.target, Served::Cache, None));
        }
        let answer = self.ask(grant, step, cached.as_ref(), deadline).await?;
        match (cached, key) {
            (Some(cached), Some(key)) if answer.status == StatusCode::NOT_MODIFIED => {
                let renewed = cached.renewed(&answer, now);
                let response = renewed.to_response(&step.target, Served::Revalidated, answer.address);
                self.cache.put(key.as_str(), renewed).await;
                Ok(response)
            }
            (_, Some(key)) => {
                match CachedAnswer::judge(&answer, now) {
                    Storable::Yes(cached) => self.cache.put(key.as_str(), cached).await,
                    // What is in the cache is no longer what the host says.
                    Storable::No => self.cache.remove(key.as_str()).await,
                }
                Ok(answer)
            }
            (_, None) => Ok(answer),
        }
    }

    async fn ask(
        &self,
        grant: &EgressGrant,
        step: &Step,
        cached: Option<&CachedAnswer>,
        deadline: Instant,
    ) -> Result<FetchResponse, EgressError> {
        let mut headers = step.headers.clone();
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static(coding::ACCEPTED));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("palyra/", env!("CARGO_PKG_VERSION"))));
        if let Some(cached) = cached {
            for (name, value) in [(IF_NONE_MATCH, &cached.etag), (IF_MODIFIED_SINCE, &cached.last_modified)] {
                if let Some(value) = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok()) {
                    headers.insert(name, value);
                }
            }
        }
        let body: OutBody = if step.body.is_empty() {
            empty()
        } else {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(step.body.len()));
            full(step.body.clone())
        };
        let record = self.egress.open_record(grant, Via::Client);
        let outgoing = Outgoing { target: step.target.clone(), method: step.method.clone(), headers, body };
        let answer = exchange(&self.egress, grant, outgoing, record, deadline).await?;
        let address = answer.address;
        let head = answer.head;
        let host = step.target.host.to_string();
        let body = answer.body.collect().await.map_err(|error: BoxError| body_error(error, host))?.to_bytes();
        let codings: Vec<String> = head
            .headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .flat_map(|value| value.to_str().unwrap_or("unreadable").split(','))
            .map(|coding| coding.trim().to_ascii_lowercase())
            .filter(|coding| !coding.is_empty() && coding != "identity")
            .collect();
        let body = if body.is_empty() { body } else { coding::decode(body, &codings, grant.limits.download_bytes)? };
        let headers = head
            .headers
            .iter()
            .filter(|(name, _)| {
                !matches!(
                    **name,
                    CONTENT_ENCODING | CONTENT_LENGTH | http::header::TRANSFER_ENCODING | http::header::CONNECTION
                )
            })
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        Ok(FetchResponse {
            status: head.status.as_u16(),
            url: step.target.url(),
            redirects: Vec::new(),
            headers,
            body,
            served: Served::Network,
            address,
        })
    }
}

impl fmt::Debug for EgressClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EgressClient")
    }
}

/// The error of this crate inside a body's error, as its own value.
fn body_error(error: BoxError, host: String) -> EgressError {
    match error.downcast::<EgressError>() {
        Ok(error) => *error,
        Err(other) => {
            let reason = egress_error_of(&*other).map_or_else(|| other.to_string(), ToString::to_string);
            EgressError::Protocol { host, reason }
        }
    }
}

/// One request of a chain of redirects.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) target: Target,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Step {
    fn new(request: &FetchRequest) -> Result<Self, EgressError> {
        let invalid = |reason: String| EgressError::RequestInvalid { reason };
        let target = Target::parse(&request.url)?;
        let capitals = request.method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
        let method = Method::from_bytes(request.method.as_bytes())
            .ok()
            .filter(|method| capitals && !matches!(*method, Method::CONNECT | Method::TRACE))
            .ok_or_else(|| invalid(format!("`{}` is not a valid HTTP method", request.method.escape_debug())))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &request.headers {
            let shown = name.escape_debug();
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| invalid(format!("`{shown}` is not a valid header name")))?;
            if name == HOST || name == CONTENT_LENGTH || is_hop_by_hop(&name) {
                return Err(invalid(format!("the header `{name}` is set by the connection")));
            }
            let value = HeaderValue::from_str(value).map_err(|_| {
                invalid(format!("the value of `{name}` contains characters that are not allowed in a header"))
            })?;
            headers.append(name, value);
        }
        if !request.body.is_empty() && !headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        }
        Ok(Self { target, method, headers, body: request.body.clone() })
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    const NAMES: [&str; 9] = [
        "connection",
        "expect",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    NAMES.contains(&name.as_str())
}
