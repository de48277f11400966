//! The daemon's own decoders, for whoever throws bytes at them: what comes in, and why it is refused. No interface: it changes with what it shows.

use std::net::SocketAddr;
use std::time::Duration;

use http::header::HOST;
use http::{HeaderMap, HeaderValue, Uri};
use palyra_common::StableErrorEnvelope;

use crate::auth::{check_host, named_host};
use crate::dispatch::Refusal;
use crate::{grpc, http as gateway, openai};

/// The position that a `Last-Event-ID` asks for.
///
/// # Errors
/// When it is not the id of an event.
pub fn resume_token(token: &[u8]) -> Result<u64, StableErrorEnvelope> {
    gateway::resume_after(token).map_err(gateway::ApiError::into_envelope)
}

/// The time that a `grpc-timeout` gives.
#[must_use]
pub fn grpc_timeout(text: &str) -> Option<Duration> {
    grpc::parse_timeout(text)
}

/// Whether a request with these `Host` headers is for a daemon at `local` that has these names besides. `None` where no HTTP parser would let a header through.
#[must_use]
pub fn host(hosts: &[&[u8]], local: SocketAddr, names: &[String]) -> Option<Result<(), StableErrorEnvelope>> {
    let mut headers = HeaderMap::new();
    for host in hosts {
        headers.append(HOST, HeaderValue::from_bytes(host).ok()?);
    }
    let named = named_host(&Uri::from_static("/"), &headers);
    Some(check_host(named.as_ref(), local, names))
}

/// Whether a body of `/v1/chat/completions` can be honoured.
///
/// # Errors
/// When it cannot.
pub fn chat_body(body: &[u8]) -> Result<(), StableErrorEnvelope> {
    openai::fuzzing::chat(body).map_err(Refusal::into_envelope)
}

/// Whether a body of `/v1/responses` can be honoured.
///
/// # Errors
/// When it cannot.
pub fn responses_body(body: &[u8]) -> Result<(), StableErrorEnvelope> {
    openai::fuzzing::responses(body).map_err(Refusal::into_envelope)
}

/// Whether a body of `/v1/embeddings` can be honoured.
///
/// # Errors
/// When it cannot.
pub fn embeddings_body(body: &[u8]) -> Result<(), StableErrorEnvelope> {
    openai::fuzzing::embeddings(body).map_err(Refusal::into_envelope)
}

/// Why the parameters in these bytes are refused, taken for each of the messages of gRPC whose fields the daemon reads by hand.
#[must_use]
pub fn grpc_refusals(message: &[u8]) -> Vec<StableErrorEnvelope> {
    grpc::refusals(message)
}
