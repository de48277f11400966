//! Commands as JSON: the envelope, messages over a socket, and addresses with a query.

use palyra_client::command::{
    COMMANDS, Command, HttpMethod, STREAM_COMMANDS, SocketMessage, SocketReply, StreamCommand, read_envelope,
    read_socket_message,
};
use palyra_common::{AcpCommand, AcpCommandEnvelope};

use super::refused;
use crate::generators::Entropy;

const CODES: [&str; 2] = ["body_malformed", "request_invalid"];

/// The envelope of a command.
pub fn acp_json(bytes: &[u8]) {
    match read_envelope(bytes) {
        Ok(envelope) => same_again(&envelope),
        Err(error) => refused(&error, &CODES, bytes.len()),
    }
    same_again(&Entropy::new(bytes).envelope());
}

fn same_again(envelope: &AcpCommandEnvelope) {
    let written = serde_json::to_vec(envelope).unwrap();
    assert_eq!(read_envelope(&written).as_ref(), Ok(envelope), "what was written does not read as the same");
    parameters(envelope.command, envelope.params.clone(), written.len());
}

/// Parameters are read or refused by field; those that were read are the same when they come again.
fn parameters(name: AcpCommand, params: serde_json::Value, sent: usize) {
    match Command::from_value(name, params.clone()) {
        Some(Ok(command)) => {
            let written = command.to_value().unwrap();
            assert_eq!(Command::from_value(name, written), Some(Ok(command)));
        }
        Some(Err(error)) => refused(&error, &CODES, sent),
        None => {}
    }
    match StreamCommand::from_value(name, params) {
        Some(Ok(command)) => {
            let written = command.to_value().unwrap();
            assert_eq!(StreamCommand::from_value(name, written), Some(Ok(command)));
        }
        Some(Err(error)) => refused(&error, &CODES, sent),
        None => {}
    }
}

/// What goes over a WebSocket, in both directions.
pub fn socket_message(bytes: &[u8]) {
    match read_socket_message(bytes) {
        Ok(SocketMessage::Command(envelope)) => {
            // It is what every other transport would have read.
            assert_eq!(read_envelope(bytes).as_ref(), Ok(&*envelope));
            same_again(&envelope);
        }
        Ok(SocketMessage::Cancel(id)) => {
            let written = serde_json::json!({ "cancel": id }).to_string();
            assert_eq!(read_socket_message(written.as_bytes()), Ok(SocketMessage::Cancel(id)));
        }
        Err(error) => refused(&error, &CODES, bytes.len()),
    }
    if let Ok(reply) = serde_json::from_slice::<SocketReply>(bytes) {
        let written = serde_json::to_vec(&reply).unwrap();
        let again: SocketReply = serde_json::from_slice(&written).unwrap();
        assert_eq!(again, reply, "a reply that was written reads as another one");
    }
}

/// An address: the first byte chooses the command, then come what it is about and, behind a question mark, the query. Cursors of pages are here.
pub fn query(bytes: &[u8]) {
    let Some((chosen, rest)) = bytes.split_first() else { return };
    let Ok(rest) = std::str::from_utf8(rest) else { return };
    let (id, query) = rest.split_once('?').unwrap_or((rest, ""));
    let read: Vec<_> = COMMANDS
        .iter()
        .chain(STREAM_COMMANDS)
        .filter(|spec| spec.method == HttpMethod::Get)
        .map(|spec| spec.name)
        .collect();
    let Some(name) = read.get(usize::from(*chosen) % read.len()).copied() else { return };
    match Command::from_query(name, Some(id), query) {
        Some(Ok(command)) => {
            let written = command.to_value().unwrap();
            assert_eq!(Command::from_value(name, written), Some(Ok(command)), "an address and a record differ");
        }
        Some(Err(error)) => refused(&error, &CODES, bytes.len()),
        None => {}
    }
    match StreamCommand::from_query(name, Some(id), query) {
        Some(Ok(command)) => {
            let written = command.to_value().unwrap();
            assert_eq!(StreamCommand::from_value(name, written), Some(Ok(command)), "an address and a record differ");
        }
        Some(Err(error)) => refused(&error, &CODES, bytes.len()),
        None => {}
    }
}
