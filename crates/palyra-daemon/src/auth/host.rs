//! To whom a request is addressed. A web page that pointed its own name at this machine is refused before anything is answered.

use std::net::SocketAddr;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use palyra_common::{ErrorCategory, StableErrorEnvelope};

/// The value of a header that is there exactly once, as text.
pub(super) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value: &HeaderValue = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

/// The host and port that a request names: of its address in HTTP/2, else of its one `Host` header.
pub(crate) fn named_host(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    match uri.authority() {
        // Both may be there; then they must not contradict each other.
        Some(authority) => match headers.contains_key(HOST) {
            true => only(headers, &HOST).filter(|host| *host == authority.as_str()).map(|_| authority.clone()),
            false => Some(authority.clone()),
        },
        None => only(headers, &HOST).and_then(|host| host.parse().ok()),
    }
}

/// Whether a host is one of the two names that nearly every program uses, with this port. [`check_host`] takes it too, and reads all that a host may be.
pub(super) fn is_loopback_name(host: &str, port: u16) -> bool {
    let digits = host.strip_prefix("127.0.0.1:").or_else(|| host.strip_prefix("localhost:"));
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse() == Ok(port))
}

/// The request must name this machine and this port. A browser sends the name that its page was loaded from, so a page of
/// another site fails here whatever its name resolves to.
pub(crate) fn check_host(
    named: Option<&Authority>,
    local: SocketAddr,
    names: &[String],
) -> Result<(), StableErrorEnvelope> {
    let fits = named.is_some_and(|authority| {
        let host = authority.host();
        let is = |name: &str| host.eq_ignore_ascii_case(name);
        // Written out only for whoever uses none of the usual names.
        let is_own = || match local {
            SocketAddr::V4(address) => host == address.ip().to_string(),
            SocketAddr::V6(address) => host == format!("[{}]", address.ip()),
        };
        let host_fits =
            is("localhost") || ["127.0.0.1", "[::1]"].contains(&host) || names.iter().any(|name| is(name)) || is_own();
        // Port 80 is what a missing port means, 443 under TLS.
        let port_fits =
            authority.port_u16().map_or(local.port() == 80 || local.port() == 443, |port| port == local.port());
        // What parses may hold more than that: a user's name, or further colons. Nobody who means well writes them.
        let plain = match authority.port() {
            Some(port) => {
                authority.as_str().strip_prefix(host).and_then(|rest| rest.strip_prefix(':')) == Some(port.as_str())
            }
            None => authority.as_str() == host,
        };
        host_fits && port_fits && plain
    });
    if fits {
        return Ok(());
    }
    Err(StableErrorEnvelope::new(
        "host_refused",
        ErrorCategory::Policy,
        "the request is not addressed to this machine by one of its names",
    )
    .hint(format!(
        "use 127.0.0.1:{} or localhost:{}, or add the name to `http.allowed_hosts`",
        local.port(),
        local.port()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&'static str, &str)]) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        let named = named_host(&Uri::from_static("/healthz"), &headers);
        let local = "127.0.0.1:7142".parse().unwrap();
        check_host(named.as_ref(), local, &["agents.example".to_owned()]).map_err(|envelope| envelope.code)
    }

    #[test]
    fn a_page_that_rebinds_its_name_is_refused() {
        for good in ["localhost:7142", "LOCALHOST:7142", "127.0.0.1:7142", "[::1]:7142", "Agents.example:7142"] {
            assert_eq!(check(&[("host", good)]), Ok(()), "{good}");
        }
        for bad in [
            "evil.example:7142",
            "127.0.0.1",
            "127.0.0.1:7143",
            "localhost.evil.example:7142",
            "x@localhost:7142",
            "",
            "127.0.0.2:7142",
            "localhost:[::1]:7142",
            "localhost:1:7142",
        ] {
            assert_eq!(check(&[("host", bad)]), Err("host_refused".into()), "{bad}");
        }
        for (host, plain) in [
            ("127.0.0.1:7142", true),
            ("localhost:7142", true),
            ("127.0.0.1:7143", false),
            ("127.0.0.1:+7142", false),
            ("localhost:", false),
            ("localhost", false),
            ("127.0.0.1:7142 ", false),
            ("x@localhost:7142", false),
        ] {
            assert_eq!(is_loopback_name(host, 7142), plain, "{host}");
            assert!(!plain || check(&[("host", host)]).is_ok(), "{host}");
        }
        assert_eq!(check(&[]), Err("host_refused".into()));
        assert_eq!(check(&[("host", "localhost:7142"), ("host", "localhost:7142")]), Err("host_refused".into()));
    }

    #[test]
    fn the_address_of_http2_counts_and_a_header_may_not_contradict_it() {
        let uri = Uri::from_static("http://localhost:7142/healthz");
        let mut headers = HeaderMap::new();
        assert_eq!(named_host(&uri, &headers).unwrap().as_str(), "localhost:7142");
        headers.insert("host", "localhost:7142".parse().unwrap());
        assert!(named_host(&uri, &headers).is_some());
        headers.insert("host", "evil.example".parse().unwrap());
        assert!(named_host(&uri, &headers).is_none());
    }
}
