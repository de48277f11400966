//! The daemon's own decoders, for whoever throws bytes at them: what comes in, and why it is refused. No interface: it changes with what it shows.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
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

/// The files of a form, by the names that their senders gave, if it arrives in pieces of this size.
///
/// # Errors
/// When it is no form, or one that is not taken.
///
/// # Panics
/// When reading stands still although everything is there.
#[allow(clippy::panic, reason = "only whoever looks for it meets it")]
pub fn form(content_type: &str, body: &[u8], piece: usize) -> Result<Vec<(String, Vec<u8>)>, StableErrorEnvelope> {
    let pieces: Vec<_> =
        body.chunks(piece.max(1)).map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece))).collect();
    let polls = 64 + 16 * pieces.len();
    let mut reading = std::pin::pin!(async {
        let mut form = gateway::Form::open(content_type, futures::stream::iter(pieces))?;
        let mut files = Vec::new();
        while let Some(mut file) = form.next().await? {
            let mut bytes = Vec::new();
            while let Some(piece) = file.piece().await? {
                bytes.extend_from_slice(&piece);
            }
            files.push((file.name.clone(), bytes));
        }
        Ok::<_, Refusal>(files)
    });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..polls {
        if let std::task::Poll::Ready(read) = reading.as_mut().poll(&mut context) {
            return read.map_err(Refusal::into_envelope);
        }
    }
    panic!("a form of {} bytes is read for ever", body.len());
}
