//! SOCKS5, for programs that do not speak HTTP: RFC 1928 with `CONNECT` alone, RFC 1929 where the proxy asks for its token.
//!
//! The two messages of a client are read by pure functions. What follows them is a tunnel like any other: by name if the name is granted, by address
//! only if that address is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::door::{HEAD_LIMIT, say};
use super::service::{ProxyAccess, Shared};
use super::tunnel::{self, Opening};
use crate::error::{EgressError, Refusal, RefusalReason};
use crate::host::Host;
use crate::log::Via;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NO_ACCEPTABLE: u8 = 0xff;
const CONNECT: u8 = 1;

const SUCCEEDED: u8 = 0;
const GENERAL_FAILURE: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const HOST_UNREACHABLE: u8 = 4;
const REFUSED: u8 = 5;
const COMMAND_UNSUPPORTED: u8 = 7;

/// What could be made of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocksOutcome<T> {
    /// A whole message and how many bytes it has.
    Complete(T, usize),
    /// The start of one.
    Incomplete,
    /// Not SOCKS5, or not as it is written.
    Malformed,
}

/// The client's first message: how it could identify itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocksGreeting {
    /// Method numbers, in the client's order.
    pub methods: Vec<u8>,
}

/// What the client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocksRequest {
    /// The command number; 1 is a connection.
    pub command: u8,
    /// The host, or the text that is none.
    pub host: Result<Host, String>,
    /// The port.
    pub port: u16,
}

/// Reads the client's first message.
#[must_use]
pub fn read_socks_greeting(bytes: &[u8]) -> SocksOutcome<SocksGreeting> {
    match bytes {
        [version, ..] if *version != VERSION => SocksOutcome::Malformed,
        [_, 0, ..] => SocksOutcome::Malformed,
        [_, count, rest @ ..] => match rest.get(..usize::from(*count)) {
            Some(methods) => SocksOutcome::Complete(SocksGreeting { methods: methods.to_vec() }, methods.len() + 2),
            None => SocksOutcome::Incomplete,
        },
        _ => SocksOutcome::Incomplete,
    }
}

/// Reads the client's request.
#[must_use]
pub fn read_socks_request(bytes: &[u8]) -> SocksOutcome<SocksRequest> {
    match bytes {
        [version, ..] if *version != VERSION => return SocksOutcome::Malformed,
        [_, _, reserved, ..] if *reserved != 0 => return SocksOutcome::Malformed,
        _ => {}
    }
    let [_, command, _, kind, rest @ ..] = bytes else { return SocksOutcome::Incomplete };
    let (host, used) = match kind {
        1 => match rest.first_chunk::<4>() {
            Some(octets) => (Ok(Host::Address(IpAddr::V4(Ipv4Addr::from(*octets)))), 4),
            None => return SocksOutcome::Incomplete,
        },
        4 => match rest.first_chunk::<16>() {
            Some(octets) => (Ok(Host::Address(IpAddr::V6(Ipv6Addr::from(*octets)))), 16),
            None => return SocksOutcome::Incomplete,
        },
        3 => {
            let Some((length, name)) = rest.split_first() else { return SocksOutcome::Incomplete };
            let Some(name) = name.get(..usize::from(*length)) else { return SocksOutcome::Incomplete };
            let text = String::from_utf8_lossy(name);
            let host = Host::parse_bare(&text)
                .map_err(|problem| format!("the host `{}` is refused: {problem}", text.escape_debug()));
            (host, 1 + name.len())
        }
        _ => return SocksOutcome::Malformed,
    };
    let Some([high, low]) = rest.get(used..).and_then(|rest| rest.first_chunk::<2>()) else {
        return SocksOutcome::Incomplete;
    };
    let port = u16::from_be_bytes([*high, *low]);
    SocksOutcome::Complete(SocksRequest { command: *command, host, port }, 4 + used + 2)
}

/// User name and password of RFC 1929; only the password is used.
fn read_password(bytes: &[u8]) -> SocksOutcome<Vec<u8>> {
    let [version, user_length, rest @ ..] = bytes else { return SocksOutcome::Incomplete };
    if *version != 1 {
        return SocksOutcome::Malformed;
    }
    let Some((length, rest)) = rest.get(usize::from(*user_length)..).and_then(<[u8]>::split_first) else {
        return SocksOutcome::Incomplete;
    };
    match rest.get(..usize::from(*length)) {
        Some(password) => SocksOutcome::Complete(password.to_vec(), 3 + usize::from(*user_length) + password.len()),
        None => SocksOutcome::Incomplete,
    }
}

/// A reply: status, and an empty address since the proxy's own is nobody's business.
const fn reply(status: u8) -> [u8; 10] {
    [VERSION, status, 0, 1, 0, 0, 0, 0, 0, 0]
}

fn status_of(error: &EgressError) -> u8 {
    match error {
        EgressError::Refused(refusal) if refusal.reason == RefusalReason::Unsupported => COMMAND_UNSUPPORTED,
        EgressError::Refused(_) => NOT_ALLOWED,
        EgressError::ResolveFailed { .. } => HOST_UNREACHABLE,
        EgressError::ConnectFailed { .. } => REFUSED,
        _ => GENERAL_FAILURE,
    }
}

/// Serves a connection that began with a SOCKS5 greeting.
pub(super) async fn serve(shared: Arc<Shared>, mut stream: TcpStream, first: Vec<u8>) {
    let grant = shared.grant();
    let limit = HEAD_LIMIT.min(grant.limits.idle());
    let spoken = tokio::time::timeout(limit, negotiate(&shared, &mut stream, first)).await;
    match spoken.unwrap_or(Err(EgressError::TimedOut { what: "reading the SOCKS5 request", limit })) {
        Ok(opening) => {
            tunnel::serve(shared, stream, opening, &reply(SUCCEEDED), &|error| reply(status_of(error)).to_vec()).await;
        }
        Err(error) => {
            shared.open_record(&grant, Via::Socks5).ended(&error);
            say(&mut stream, &reply(status_of(&error))).await;
        }
    }
}

async fn negotiate(shared: &Shared, stream: &mut TcpStream, mut bytes: Vec<u8>) -> Result<Opening, EgressError> {
    let greeting = next(stream, &mut bytes, read_socks_greeting).await?;
    let method = match &shared.access {
        ProxyAccess::Open => NO_AUTHENTICATION,
        ProxyAccess::Token(_) => PASSWORD,
    };
    if !greeting.methods.contains(&method) {
        let _ = stream.write_all(&[VERSION, NO_ACCEPTABLE]).await;
        return Err(denied());
    }
    write(stream, &[VERSION, method]).await?;
    if let ProxyAccess::Token(token) = &shared.access {
        let password = next(stream, &mut bytes, read_password).await?;
        let known = bool::from(password.ct_eq(token.expose().as_bytes()));
        write(stream, &[1, u8::from(!known)]).await?;
        if !known {
            return Err(denied());
        }
    }
    let request = next(stream, &mut bytes, read_socks_request).await?;
    if request.command != CONNECT {
        let message = "only SOCKS5 `CONNECT` is supported, not `BIND` or `UDP ASSOCIATE`";
        return Err(Refusal::new(RefusalReason::Unsupported, message).into());
    }
    let host = request.host.map_err(|message| Refusal::new(RefusalReason::HostSpelling, message))?;
    Ok(Opening { host, port: request.port, via: Via::Socks5, sent: bytes })
}

fn denied() -> EgressError {
    Refusal::new(RefusalReason::AccessDenied, "access to the proxy is refused: the access token is missing or wrong")
        .into()
}

fn broken(reason: &str) -> EgressError {
    Refusal::new(RefusalReason::AmbiguousRequest, format!("the SOCKS5 request is refused: {reason}")).into()
}

async fn write(stream: &mut TcpStream, bytes: &[u8]) -> Result<(), EgressError> {
    stream.write_all(bytes).await.map_err(|_| broken("the client disconnected"))
}

/// Reads until a message is whole, and takes it off the front.
async fn next<T>(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    read: fn(&[u8]) -> SocksOutcome<T>,
) -> Result<T, EgressError> {
    loop {
        match read(bytes) {
            SocksOutcome::Complete(message, used) => {
                bytes.drain(..used.min(bytes.len()));
                return Ok(message);
            }
            SocksOutcome::Malformed => return Err(broken("it is malformed")),
            SocksOutcome::Incomplete => {
                if stream.read_buf(bytes).await.unwrap_or(0) == 0 {
                    return Err(broken("it is incomplete"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_at_every_length() {
        let request = [&[5, 1, 0, 3, 11][..], b"api.example", &[1, 187, 99]].concat();
        let expected = SocksRequest { command: 1, host: Ok(Host::Name("api.example".into())), port: 443 };
        assert_eq!(read_socks_request(&request), SocksOutcome::Complete(expected, 18));
        for length in 0..18 {
            assert_eq!(read_socks_request(&request[..length]), SocksOutcome::Incomplete);
        }
        assert_eq!(
            read_socks_greeting(&[5, 2, 0, 2]),
            SocksOutcome::Complete(SocksGreeting { methods: vec![0, 2] }, 4)
        );
        assert_eq!(read_socks_greeting(&[5, 2, 0]), SocksOutcome::Incomplete);
        assert_eq!(read_password(b"\x01\x01u\x02pw"), SocksOutcome::Complete(b"pw".to_vec(), 6));
    }

    #[test]
    fn what_is_not_socks5_is_malformed() {
        for bytes in [&[4, 1, 0][..], &[5, 0]] {
            assert_eq!(read_socks_greeting(bytes), SocksOutcome::Malformed);
        }
        for bytes in [&[4, 1, 0, 1][..], &[5, 1, 1, 1, 0, 0, 0, 0, 0, 0], &[5, 1, 0, 9, 0]] {
            assert_eq!(read_socks_request(bytes), SocksOutcome::Malformed);
        }
        let odd = [&[5, 1, 0, 3, 10][..], b"0x7f.0.0.1", &[0, 80]].concat();
        assert!(matches!(read_socks_request(&odd), SocksOutcome::Complete(SocksRequest { host: Err(_), .. }, 17)));
    }

    proptest::proptest! {
        #[test]
        fn reading_never_panics(mut bytes in proptest::collection::vec(0_u8.., 0..300), socks: bool) {
            if socks && let Some(first) = bytes.first_mut() { *first = VERSION; }
            let _ = read_socks_greeting(&bytes);
            let _ = read_password(&bytes);
            if let SocksOutcome::Complete(_, used) = read_socks_request(&bytes) {
                proptest::prop_assert!(used <= bytes.len());
            }
        }
    }
}
