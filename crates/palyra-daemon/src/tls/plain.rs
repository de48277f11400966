//! What somebody hears who speaks plain HTTP where TLS is spoken: one sentence, and no more.

use std::io;

use palyra_client::api::ErrorResponse;
use palyra_common::{ErrorCategory, StableErrorEnvelope};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How TLS begins: a record of the handshake. No method of HTTP begins with it.
const HANDSHAKE: u8 = 0x16;
/// Most of the request that is read away, so that the answer is not lost when the connection is closed over unread bytes.
const READ_AWAY: u64 = 16 * 1024;

/// Whether the other side speaks TLS; waits for its first byte and leaves that where it is.
pub(super) async fn speaks_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    match stream.peek(&mut first).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(first == [HANDSHAKE]),
    }
}

/// Says in the caller's own language what is wrong.
pub(super) async fn refuse(mut stream: TcpStream) -> io::Result<()> {
    let error = StableErrorEnvelope::new("tls_required", ErrorCategory::Validation, "this address accepts only HTTPS")
        .hint("use https:// instead of http://");
    let body = serde_json::to_string(&ErrorResponse { error })?;
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await?;
    let (reader, _writer) = stream.split();
    tokio::io::copy(&mut reader.take(READ_AWAY), &mut tokio::io::sink()).await?;
    Ok(())
}
