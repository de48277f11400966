//! The cookie of the console.
//!
//! It is `HttpOnly` (no script reads it), `SameSite=Strict` (no other site sends it) and has neither domain nor path to share. Under TLS
//! it carries the prefix `__Host-`, by which a browser refuses a cookie of that name set by anybody else, such as a neighbouring
//! subdomain or a plain connection. Without TLS a browser would refuse that prefix, so loopback has a name of its own.

use std::time::Duration;

/// Whether the console is served over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Over TLS.
    Tls,
    /// Over loopback, unencrypted.
    Plain,
}

/// Name of the cookie.
#[must_use]
pub const fn cookie_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Tls => "__Host-palyra-console",
        Transport::Plain => "palyra-console",
    }
}

/// The value of `Set-Cookie` that hands out a session.
#[must_use]
pub fn set_cookie(transport: Transport, value: &str, max_age: Duration) -> String {
    let secure = match transport {
        Transport::Tls => "; Secure",
        Transport::Plain => "",
    };
    let (name, seconds) = (cookie_name(transport), max_age.as_secs());
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// The value of `Set-Cookie` that takes a session back.
#[must_use]
pub fn clear_cookie(transport: Transport) -> String {
    set_cookie(transport, "", Duration::ZERO)
}

/// The session's value in a `Cookie` header. A name that occurs with two values is refused: one of them was put there by somebody else.
#[must_use]
pub fn read_cookie(transport: Transport, header: &str) -> Option<&str> {
    let name = cookie_name(transport);
    let mut values = header
        .split(';')
        .filter_map(|pair| pair.split_once('='))
        .filter(|(found, _)| found.trim() == name)
        .map(|(_, value)| value.trim());
    let first = values.next().filter(|value| !value.is_empty())?;
    values.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn attributes_keep_the_cookie_to_itself() {
        let hour = Duration::from_secs(3_600);
        assert_eq!(
            set_cookie(Transport::Tls, "v", hour),
            "__Host-palyra-console=v; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict; Secure"
        );
        assert_eq!(
            set_cookie(Transport::Plain, "v", hour),
            "palyra-console=v; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict"
        );
        assert!(clear_cookie(Transport::Tls).contains("Max-Age=0"));
    }

    #[test]
    fn the_own_cookie_is_found_among_others() {
        for (header, expected) in [
            ("palyra-console=abc", Some("abc")),
            ("a=1; palyra-console=abc; b=2", Some("abc")),
            (" palyra-console = abc ", Some("abc")),
            ("palyra-console=abc; palyra-console=abc", Some("abc")),
            ("palyra-console=abc; palyra-console=evil", None),
            ("palyra-console=", None),
            ("xpalyra-console=abc", None),
            ("__Host-palyra-console=abc", None),
            ("palyra-console", None),
            ("", None),
        ] {
            assert_eq!(read_cookie(Transport::Plain, header), expected, "{header}");
        }
        assert_eq!(
            read_cookie(Transport::Tls, "palyra-console=abc"),
            None,
            "the name without the prefix counts for nothing"
        );
    }

    proptest! {
        #[test]
        fn any_header_is_read_without_harm(header in "\\PC{0,80}") {
            let _ = read_cookie(Transport::Tls, &header);
        }
    }
}
