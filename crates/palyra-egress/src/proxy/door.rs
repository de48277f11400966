//! Which protocol a connection speaks: its first byte tells SOCKS5 from HTTP, its first line tells a tunnel from a request.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::answer::refuse_raw;
use super::guard;
use super::requests::{self, Door};
use super::rewind::Rewind;
use super::service::{ProxyAccess, Shared};
use super::socks;
use super::tunnel::{self, Opening};
use crate::error::{EgressError, Refusal, RefusalReason};
use crate::log::Via;
use crate::target::parse_authority;

/// Longest wait for a whole head or greeting. Stops slow loris: a client that sends a byte now and then holds a connection no longer than this.
pub(super) const HEAD_LIMIT: Duration = Duration::from_secs(10);

const SOCKS5: u8 = 5;

/// Serves one connection to its end.
pub(super) async fn serve(shared: Arc<Shared>, mut stream: TcpStream) {
    let grant = shared.grant();
    let limit = HEAD_LIMIT.min(grant.limits.idle());
    let mut first = Vec::with_capacity(1024);
    match tokio::time::timeout(limit, stream.read_buf(&mut first)).await {
        // A client that said nothing gets nothing.
        Ok(Err(_) | Ok(0)) | Err(_) => return,
        Ok(Ok(_)) => {}
    }
    if first.first() == Some(&SOCKS5) {
        return socks::serve(shared, stream, first).await;
    }
    match tokio::time::timeout(limit, read_head(&mut stream, &mut first, grant.limits.header_bytes)).await {
        Ok(Ok(Head::Connect)) => connect(shared, stream, &first).await,
        // Hyper reads the head once more, behind the guard, and answers what is wrong with it.
        Ok(Ok(Head::Other)) => requests::serve(shared, Rewind::new(first, stream), Door::Proxy).await,
        Ok(Err(error)) => fail(&shared, &mut stream, &error).await,
        Err(_) => {
            fail(&shared, &mut stream, &EgressError::TimedOut { what: "reading the request headers", limit }).await;
        }
    }
}

/// Tells a client that there is no place for it.
pub(super) async fn turn_away(shared: &Shared, mut stream: TcpStream, busy: &EgressError) {
    let mut first = [0; 1];
    let limit = HEAD_LIMIT.min(Duration::from_secs(1));
    // The answer is HTTP; a SOCKS client just sees its connection closed.
    if let Ok(Ok(1)) = tokio::time::timeout(limit, stream.peek(&mut first)).await
        && first != [SOCKS5]
    {
        fail(shared, &mut stream, busy).await;
    } else {
        shared.open_record(&shared.grant(), Via::Socks5).ended(busy);
    }
}

async fn fail(shared: &Shared, stream: &mut TcpStream, error: &EgressError) {
    shared.open_record(&shared.grant(), Via::HttpProxy).ended(error);
    say(stream, &refuse_raw(error)).await;
}

/// Writes a last word and closes. What the client still sends is read for a moment: closing on unread bytes would reset the connection and
/// take the answer with it.
pub(super) async fn say(stream: &mut TcpStream, last: &[u8]) {
    let goodbye = async {
        stream.write_all(last).await?;
        stream.shutdown().await?;
        let mut rest = [0; 4096];
        let mut read = 0;
        while read < 256 * 1024 {
            match stream.read(&mut rest).await? {
                0 => break,
                count => read += count,
            }
        }
        Ok::<_, std::io::Error>(())
    };
    let _ = tokio::time::timeout(Duration::from_millis(500), goodbye).await;
}

enum Head {
    Connect,
    Other,
}

/// Reads on until the head is complete, as far as the grant allows.
async fn read_head(stream: &mut TcpStream, first: &mut Vec<u8>, most: usize) -> Result<Head, EgressError> {
    loop {
        if !b"CONNECT ".starts_with(first.get(..first.len().min(8)).unwrap_or_default()) {
            return Ok(Head::Other);
        }
        if memchr::memmem::find(first, b"\r\n\r\n").is_some() {
            return Ok(Head::Connect);
        }
        if first.len() > most {
            return Err(guard::too_large(most).into());
        }
        let read = stream.read_buf(first).await.unwrap_or(0);
        if read == 0 {
            return Err(guard::ambiguous("the request headers are incomplete").into());
        }
    }
}

async fn connect(shared: Arc<Shared>, mut stream: TcpStream, first: &[u8]) {
    let grant = shared.grant();
    let opened = guard::check_head(first, grant.limits.header_bytes).map_err(EgressError::from).and_then(|head| {
        authorised(&shared.access, head.proxy_authorization.as_deref())?;
        // The guard has made sure that the authority is the whole target and that `Host`, if any, says the same.
        let (host, port) = parse_authority(&head.target)?;
        let port = port.ok_or_else(|| guard::ambiguous("`CONNECT` names no port"))?;
        if let Some(said) = &head.host {
            let (said_host, said_port) = parse_authority(said)?;
            if said_host != host || said_port.is_some_and(|said| said != port) {
                let message = format!("a tunnel to `{host}` is refused: its `Host` header names another host");
                return Err(Refusal::new(RefusalReason::HostHeaderMismatch, message).into());
            }
        }
        let rest = first.get(head.length..).unwrap_or_default().to_vec();
        Ok(Opening { host, port, via: Via::Connect, sent: rest })
    });
    match opened {
        Ok(opening) => {
            let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
            tunnel::serve(shared, stream, opening, established, &|error| refuse_raw(error)).await;
        }
        Err(error) => {
            shared.open_record(&grant, Via::Connect).ended(&error);
            say(&mut stream, &refuse_raw(&error)).await;
        }
    }
}

/// Whether the `Proxy-Authorization` header shows the token.
pub(super) fn authorised(access: &ProxyAccess, header: Option<&str>) -> Result<(), EgressError> {
    let ProxyAccess::Token(token) = access else { return Ok(()) };
    let shown = header
        .and_then(|header| header.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))
        .and_then(|(_, encoded)| STANDARD.decode(encoded.trim()).ok())
        .and_then(|decoded| String::from_utf8(decoded).ok());
    let password = shown.as_deref().and_then(|shown| shown.split_once(':')).map(|(_, password)| password);
    if password.is_some_and(|password| bool::from(password.as_bytes().ct_eq(token.expose().as_bytes()))) {
        return Ok(());
    }
    Err(Refusal::new(
        RefusalReason::AccessDenied,
        "access to the proxy is refused: the access token is missing or wrong",
    )
    .into())
}
