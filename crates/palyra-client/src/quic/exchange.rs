//! One command on one stream of its own: the envelope up, and what comes back.

use std::net::SocketAddr;

use palyra_common::{AcpCommandEnvelope, AcpCommandResultEnvelope, RequestId};
use quinn::{Connection, ConnectionError, ReadError, RecvStream, WriteError};
use serde_json::Value;

use super::client::described;
use super::frame::{FrameDecoder, encode_message};
use super::{CloseCode, MAX_FRAME_BYTES};
use crate::command::SocketReply;
use crate::error::ClientError;
use crate::transport::one_line;

const DOING: &str = "sending a command";
/// Transport errors from here on are alerts of TLS.
const TLS_ALERTS: std::ops::Range<u64> = 0x100..0x200;

/// A command that was sent, and its stream of replies. Dropping it tells the daemon that nobody listens any more.
#[derive(Debug)]
pub(super) struct Exchange {
    request_id: RequestId,
    address: SocketAddr,
    replies: RecvStream,
    decoder: FrameDecoder,
}

impl Exchange {
    /// Sends a command on a new stream.
    pub(super) async fn open(connection: &Connection, envelope: &AcpCommandEnvelope) -> Result<Self, ClientError> {
        let address = connection.remote_address();
        let malformed = |message: String| ClientError::Malformed { doing: DOING, message };
        let text = serde_json::to_vec(envelope).map_err(|error| malformed(error.to_string()))?;
        if text.len() > MAX_FRAME_BYTES {
            let error = super::FrameError::TooLarge { length: text.len() };
            return Err(ClientError::Refused(Box::new(palyra_common::ToStableError::to_stable(&error))));
        }
        let mut bytes = Vec::with_capacity(text.len() + 4);
        encode_message(&text, &mut bytes);
        let (mut up, replies) = connection.open_bi().await.map_err(|error| lost(DOING, address, error))?;
        match up.write_all(&bytes).await {
            // The daemon needs no more of it to answer.
            Ok(()) | Err(WriteError::Stopped(_)) => {}
            Err(WriteError::ConnectionLost(error)) => return Err(lost(DOING, address, error)),
            Err(error) => return Err(broken(error)),
        }
        // A stream that the daemon stopped is as finished as one that it did not.
        let _ = up.finish();
        Ok(Self { request_id: envelope.request_id, address, replies, decoder: FrameDecoder::of_answers() })
    }

    /// The one result of a command that is answered once.
    pub(super) async fn result(mut self) -> Result<AcpCommandResultEnvelope, ClientError> {
        match self.next().await? {
            Some(SocketReply::Result(result)) => Ok(*result),
            Some(SocketReply::Unreadable { error, .. }) => Err(ClientError::Refused(Box::new(one_line(error)))),
            Some(_) => {
                let message = "a stream came back instead of a result".to_owned();
                Err(ClientError::Malformed { doing: DOING, message })
            }
            None => Err(broken("the stream ended before the result")),
        }
    }

    /// The next reply; `None` where the stream ends. Cancel-safe.
    async fn next(&mut self) -> Result<Option<SocketReply>, ClientError> {
        let malformed = |message: String| ClientError::Malformed { doing: DOING, message };
        loop {
            if let Some(message) = self.decoder.next_message().map_err(|error| malformed(error.to_string()))? {
                let reply: SocketReply =
                    serde_json::from_slice(&message).map_err(|error| malformed(error.to_string()))?;
                let about = match &reply {
                    SocketReply::Document { request_id, .. } | SocketReply::End { request_id } => Some(*request_id),
                    SocketReply::Result(result) => Some(result.request_id()),
                    SocketReply::Unreadable { .. } => None,
                };
                return match about {
                    Some(other) if other != self.request_id => Err(malformed("it answers another request".to_owned())),
                    _ => Ok(Some(reply)),
                };
            }
            match self.replies.read_chunk(MAX_FRAME_BYTES, true).await {
                Ok(Some(chunk)) => self.decoder.push(&chunk.bytes),
                Ok(None) => {
                    self.decoder.finish().map_err(|error| broken(error.to_string()))?;
                    return Ok(None);
                }
                Err(ReadError::ConnectionLost(error)) => return Err(lost(DOING, self.address, error)),
                Err(error) => return Err(broken(error)),
            }
        }
    }
}

/// The documents of a command that is answered with a stream. What is not read is not sent either.
#[derive(Debug)]
pub struct QuicDocuments {
    exchange: Exchange,
    ended: bool,
}

impl QuicDocuments {
    pub(super) fn new(exchange: Exchange) -> Self {
        Self { exchange, ended: false }
    }

    /// The next document; `None` at the end. Cancel-safe.
    ///
    /// # Errors
    /// When the daemon refuses the command or breaks the stream off, or the connection breaks.
    pub async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        if self.ended {
            return Ok(None);
        }
        match self.exchange.next().await? {
            Some(SocketReply::Document { document, .. }) => Ok(Some(document)),
            Some(SocketReply::End { .. }) => {
                self.ended = true;
                Ok(None)
            }
            Some(SocketReply::Unreadable { error, .. }) => Err(ClientError::Refused(Box::new(one_line(error)))),
            Some(SocketReply::Result(result)) => match result.into_outcome() {
                Err(error) => Err(ClientError::Refused(Box::new(one_line(error)))),
                Ok(_) => {
                    let message = "a result came back instead of a stream".to_owned();
                    Err(ClientError::Malformed { doing: DOING, message })
                }
            },
            None => Err(broken("the stream ended unexpectedly")),
        }
    }
}

fn broken(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ClientError {
    ClientError::Disconnected { doing: DOING, source: source.into() }
}

/// What a lost connection means: that somebody was refused, or that the connection itself is at fault.
pub(super) fn lost(doing: &'static str, address: SocketAddr, error: ConnectionError) -> ClientError {
    let refused = match &error {
        ConnectionError::TransportError(error) => TLS_ALERTS.contains(&u64::from(error.code)),
        ConnectionError::ConnectionClosed(close) => TLS_ALERTS.contains(&u64::from(close.error_code)),
        ConnectionError::ApplicationClosed(close) => {
            CloseCode::of(close.error_code.into_inner()) == Some(CloseCode::CertificateRefused)
        }
        _ => false,
    };
    if refused {
        ClientError::CertificateRefused { endpoint: described(address), reason: error.to_string() }
    } else {
        ClientError::Disconnected { doing, source: Box::new(error) }
    }
}
