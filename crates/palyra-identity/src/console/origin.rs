//! Where a request of the console may come from: the address it is sent to.
//!
//! A browser names the origin of every request that changes something and of every WebSocket. Another site can make a browser send
//! such a request, but not change what it says about its origin. The caller has already checked that `Host` is a name of this daemon;
//! without that, a name that an attacker points at this machine would agree with itself.

use crate::Refusal;

/// Longest origin that is shown back.
const SHOWN_LETTERS: usize = 80;

/// Checks that a request comes from the address it was sent to.
///
/// # Errors
/// [`Refusal::Origin`] when the header is missing, `null`, malformed, or names another host, port or scheme.
pub fn check_origin(origin: Option<&str>, host: &str) -> Result<(), Refusal> {
    let refused = || Refusal::Origin { origin: shown(origin.unwrap_or("an unknown origin")) };
    let (scheme, authority) = origin.and_then(|origin| origin.split_once("://")).ok_or_else(refused)?;
    let default_port = match scheme {
        "http" => "80",
        "https" => "443",
        _ => return Err(refused()),
    };
    let from = normal(authority, default_port).ok_or_else(refused)?;
    let to = normal(host, default_port).ok_or_else(refused)?;
    if from == to { Ok(()) } else { Err(refused()) }
}

/// Host and port, in lower case, with the port written out.
fn normal<'a>(authority: &'a str, default_port: &'a str) -> Option<(String, &'a str)> {
    let (host, port) = match authority.rsplit_once(':') {
        // A colon inside brackets belongs to an IPv6 address.
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, default_port),
    };
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_host = match bracketed {
        Some(inside) => inside.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)),
    };
    let is_port = port.parse::<u16>().is_ok_and(|number| number.to_string() == port);
    (is_host && is_port).then(|| (host.to_ascii_lowercase(), port))
}

fn shown(origin: &str) -> String {
    origin
        .chars()
        .take(SHOWN_LETTERS)
        .map(|letter| if letter.is_control() || letter == '`' { ' ' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_own_address_is_accepted() {
        for (origin, host) in [
            ("http://127.0.0.1:7142", "127.0.0.1:7142"),
            ("http://localhost:7142", "LOCALHOST:7142"),
            ("https://palyra.example", "palyra.example"),
            ("https://palyra.example", "palyra.example:443"),
            ("http://localhost:80", "localhost"),
            ("http://[::1]:7142", "[::1]:7142"),
            ("https://[::1]", "[::1]"),
        ] {
            assert_eq!(check_origin(Some(origin), host), Ok(()), "{origin} to {host}");
        }
        for (origin, host) in [
            (None, "localhost:7142"),
            (Some("null"), "localhost:7142"),
            (Some(""), "localhost:7142"),
            (Some("http://evil.example"), "localhost:7142"),
            (Some("http://localhost:7143"), "localhost:7142"),
            (Some("http://localhost"), "localhost:7142"),
            (Some("https://localhost"), "localhost:80"),
            (Some("http://localhost:7142/"), "localhost:7142"),
            (Some("http://user@localhost:7142"), "localhost:7142"),
            (Some("http://localhost:7142.evil.example"), "localhost:7142"),
            (Some("http://localhost:07142"), "localhost:7142"),
            (Some("file://localhost:7142"), "localhost:7142"),
            (Some("HTTP://localhost:7142"), "localhost:7142"),
            (Some("http://"), ""),
            (Some("http://:80"), ":80"),
            (Some("http://[x]:80"), "[x]:80"),
            (Some("http://localhost:7142 http://evil.example"), "localhost:7142"),
        ] {
            assert!(matches!(check_origin(origin, host), Err(Refusal::Origin { .. })), "{origin:?} to {host}");
        }
    }

    proptest! {
        /// Whatever is accepted names the same host that it was sent to.
        #[test]
        fn nothing_but_the_same_authority_agrees(origin in "(http|https)://\\PC{0,30}", host in "\\PC{0,30}") {
            if check_origin(Some(&origin), &host).is_ok() {
                let authority = origin.split_once("://").unwrap().1.to_ascii_lowercase();
                let host = host.to_ascii_lowercase();
                prop_assert!(authority.starts_with(&host) || host.starts_with(&authority));
            }
        }
    }
}
