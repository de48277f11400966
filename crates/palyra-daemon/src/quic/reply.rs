//! The one place where outcomes and refusals become frames of QUIC.

use palyra_client::command::SocketReply;
use palyra_client::quic::encode_message;
use palyra_common::{AcpCommandEnvelope, AcpCommandResultEnvelope, RequestId, StableErrorEnvelope};

use crate::dispatch::{self, Page, Refusal};

/// What a command came to.
pub(super) fn result(result: AcpCommandResultEnvelope) -> Vec<u8> {
    framed(&SocketReply::Result(Box::new(result)))
}

/// Why a command was not carried out, or why its stream breaks off.
pub(super) fn refusal(envelope: &AcpCommandEnvelope, refusal: Refusal) -> Vec<u8> {
    let error = refusal.into_envelope();
    if error.category == palyra_common::ErrorCategory::Internal {
        tracing::error!(code = error.code, message = error.message, "a command failed");
    }
    result(AcpCommandResultEnvelope::answer(envelope, Err(error)))
}

/// What came in is no command at all.
pub(super) fn unreadable(sent: &[u8], error: StableErrorEnvelope) -> Vec<u8> {
    framed(&SocketReply::unreadable(sent, error))
}

/// A stream is complete.
pub(super) fn end(request_id: RequestId) -> Vec<u8> {
    framed(&SocketReply::End { request_id })
}

/// Some documents of a stream.
pub(super) fn page(request_id: RequestId, page: &Page) -> dispatch::Result<Vec<u8>> {
    let (mut frames, mut text) = (Vec::new(), Vec::new());
    page.each(|document| {
        text.clear();
        text.extend_from_slice(format!("{{\"request_id\":\"{request_id}\",\"document\":").as_bytes());
        document.write_json(&mut text)?;
        text.push(b'}');
        encode_message(&text, &mut frames);
        Ok::<_, serde_json::Error>(())
    })
    .map_err(|error| Refusal::internal(format!("a document cannot be written: {error}")))?;
    Ok(frames)
}

fn framed(reply: &SocketReply) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_message(&serde_json::to_vec(reply).unwrap_or_default(), &mut frame);
    frame
}
