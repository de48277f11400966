//! What goes over a WebSocket or a pipe of lines: command envelopes in; results, documents of streams and their ends out.

use palyra_common::{AcpCommandEnvelope, AcpCommandResultEnvelope, RequestId, StableErrorEnvelope};
use serde::{Deserialize, Serialize};

use super::parse;

/// From the client.
#[derive(Debug, Clone, PartialEq)]
pub enum SocketMessage {
    /// Carry this out.
    Command(Box<AcpCommandEnvelope>),
    /// Send no more documents of this stream.
    Cancel(RequestId),
}

/// From the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SocketReply {
    /// One document of a stream.
    Document {
        /// Which stream.
        request_id: RequestId,
        /// The document.
        document: serde_json::Value,
    },
    /// What a command came to, or why a stream broke off.
    Result(Box<AcpCommandResultEnvelope>),
    /// A message is no command.
    Unreadable {
        /// Which request it was, if at least that can be read, so that whoever waits for an answer has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<RequestId>,
        /// What is wrong with it.
        error: StableErrorEnvelope,
    },
    /// A stream is complete.
    End {
        /// Which stream.
        request_id: RequestId,
    },
}

impl SocketReply {
    /// The answer to a message that is no command.
    #[must_use]
    pub fn unreadable(sent: &[u8], error: StableErrorEnvelope) -> Self {
        let named: Option<Named> = serde_json::from_slice(sent).ok();
        Self::Unreadable { request_id: named.map(|named| named.request_id), error }
    }
}

#[derive(Deserialize)]
struct Named {
    request_id: RequestId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cancel {
    cancel: RequestId,
}

/// Reads a command envelope.
pub fn read_envelope(text: &[u8]) -> Result<AcpCommandEnvelope, StableErrorEnvelope> {
    parse::body(text)
}

/// Reads a message of the client.
pub fn read_socket_message(text: &[u8]) -> Result<SocketMessage, StableErrorEnvelope> {
    if let Ok(Cancel { cancel }) = serde_json::from_slice(text) {
        return Ok(SocketMessage::Cancel(cancel));
    }
    read_envelope(text).map(|envelope| SocketMessage::Command(Box::new(envelope)))
}

#[cfg(test)]
mod tests {
    use palyra_common::AcpCommand;
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_read_back_and_nonsense_is_named() {
        let id = RequestId::generate();
        let text = json!({"request_id": id, "command": "run.list", "params": {"limit": 3}}).to_string();
        let Ok(SocketMessage::Command(envelope)) = read_socket_message(text.as_bytes()) else { panic!("{text}") };
        assert_eq!(envelope.command, AcpCommand::RunList);
        let cancel = json!({"cancel": id}).to_string();
        assert_eq!(read_socket_message(cancel.as_bytes()), Ok(SocketMessage::Cancel(id)));
        for bad in [
            &b""[..],
            b"{",
            b"[]",
            b"{}",
            b"\xff",
            b"{\"cancel\": 7}",
            br#"{"request_id": "x", "command": "run.list"}"#,
        ] {
            assert!(read_socket_message(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn replies_are_told_apart() {
        let id = RequestId::generate();
        let unreadable =
            |text: &str| SocketReply::unreadable(text.as_bytes(), read_socket_message(text.as_bytes()).unwrap_err());
        let replies = [
            SocketReply::Document { request_id: id, document: json!({"seq": 1}) },
            SocketReply::End { request_id: id },
            unreadable(&json!({"request_id": id, "command": "run.lst", "params": {}}).to_string()),
            unreadable("{"),
        ];
        assert!(matches!(&replies[2], SocketReply::Unreadable { request_id: Some(found), .. } if *found == id));
        assert!(matches!(&replies[3], SocketReply::Unreadable { request_id: None, .. }));
        for reply in replies {
            let text = serde_json::to_string(&reply).unwrap();
            assert_eq!(serde_json::from_str::<SocketReply>(&text).unwrap(), reply);
        }
    }
}
