//! Headers that decide something: where a stream goes on, whom a request is for, where a page comes from, how long a caller waits.
//!
//! Each is compared with a look at the same text that is too simple to be wrong.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use palyra_identity::check_origin;

use super::refused;

const PORT: u16 = 7142;
const OWN_NAME: &str = "agents.example";

/// `Last-Event-ID`.
pub fn resume_token(bytes: &[u8]) {
    let read = palyra_daemon::fuzzing::resume_token(bytes);
    let text = std::str::from_utf8(bytes).unwrap_or_default().trim();
    let digits = text.strip_prefix('+').unwrap_or(text);
    match &read {
        Ok(next) => {
            assert!(!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()), "`{text}` gave {next}");
            assert!(*next >= 1);
            assert_eq!(palyra_daemon::fuzzing::resume_token((next - 1).to_string().as_bytes()), Ok(*next));
        }
        Err(error) => refused(error, &["request_invalid"], bytes.len()),
    }
}

/// `Host`, on lines of their own where there are several.
pub fn host_header(bytes: &[u8]) {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let hosts: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
    let Some(verdict) = palyra_daemon::fuzzing::host(&hosts, local, &[OWN_NAME.to_owned()]) else { return };
    match verdict {
        Ok(()) => {
            let [host] = hosts[..] else { panic!("several hosts were let in: {hosts:?}") };
            let text = std::str::from_utf8(host).unwrap().to_ascii_lowercase();
            let (name, port) = text.rsplit_once(':').unwrap();
            assert!(["localhost", "127.0.0.1", "[::1]", OWN_NAME].contains(&name), "`{text}` was let in");
            assert_eq!(port.parse(), Ok(PORT), "`{text}` was let in");
        }
        Err(error) => assert_eq!(error.code, "host_refused"),
    }
}

/// `Origin`, and behind a line break the host that it is held against.
pub fn origin(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (origin, host) = text.split_once('\n').unwrap_or((text, "localhost:7142"));
    if check_origin(Some(origin), host).is_ok() {
        let (scheme, authority) = origin.split_once("://").unwrap();
        let port = match scheme {
            "http" => ":80",
            "https" => ":443",
            other => panic!("pages of `{other}` were let in"),
        };
        let with_port = |text: &str| {
            let text = text.to_ascii_lowercase();
            if text.rsplit(']').next().unwrap_or_default().contains(':') { text } else { text + port }
        };
        assert_eq!(with_port(authority), with_port(host), "`{origin}` was let in to `{host}`");
    }
    // A page of this very host may ask, however the host is written.
    assert!(check_origin(None, host).is_err(), "no origin at all is no origin of ours");
}

/// `grpc-timeout`.
pub fn grpc_timeout(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let read = palyra_daemon::fuzzing::grpc_timeout(text);
    let bytes = text.as_bytes();
    let right = (2..=9).contains(&bytes.len())
        && bytes.iter().rev().skip(1).all(u8::is_ascii_digit)
        && bytes.last().is_some_and(|unit| b"HMSmun".contains(unit));
    assert_eq!(read.is_some(), right, "`{text}` gave {read:?}");
    assert!(read.is_none_or(|timeout| timeout <= Duration::from_secs(99_999_999 * 3600)));
}
