//! Requests that come by a reverse proxy, or to a port that is forwarded: the public origin that they name, and who is behind the proxy.
//!
//! Nothing a client writes is believed by itself. A public origin counts only if the configuration names it, and one of `https` only where TLS was really spoken: by this
//! daemon, or by a proxy whose address the configuration trusts. Only such a proxy says who its client is.

use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderMap, HeaderName};
use palyra_common::config::HttpConfig;

use super::{Peer, Tls};

const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The scheme of a public origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// What the configuration says about proxies.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    origins: Vec<PublicOrigin>,
    trusted: Vec<IpAddr>,
}

/// An address under which browsers know this daemon.
#[derive(Debug)]
struct PublicOrigin {
    scheme: Scheme,
    authority: String,
}

impl PublicOrigin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let (scheme, default_port) = match scheme {
            "http" => (Scheme::Http, ":80"),
            "https" => (Scheme::Https, ":443"),
            _ => return None,
        };
        let authority = authority.strip_suffix(default_port).unwrap_or(authority).to_ascii_lowercase();
        Some(Self { scheme, authority })
    }

    /// Whether a request names this origin; its default port may be written out.
    fn is(&self, named: &Authority) -> bool {
        let port = match self.scheme {
            Scheme::Http => ":80",
            Scheme::Https => ":443",
        };
        let named = named.as_str();
        named.strip_suffix(port).unwrap_or(named).eq_ignore_ascii_case(&self.authority)
    }
}

impl Proxies {
    /// As the configuration has checked them.
    pub(crate) fn new(config: &HttpConfig) -> Self {
        Self {
            origins: config.public_origins.iter().filter_map(|text| PublicOrigin::parse(text)).collect(),
            trusted: config
                .trusted_proxies
                .iter()
                .filter_map(|text| text.parse().ok())
                .map(|address: IpAddr| address.to_canonical())
                .collect(),
        }
    }

    /// Whether there is any public origin that a request could name.
    pub(super) fn has_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    /// The addresses of trusted proxies.
    pub(crate) fn trusted(&self) -> &[IpAddr] {
        &self.trusted
    }

    /// The peer as it is once the request was looked at: who is behind the proxy, and which public origin they use.
    pub(super) fn resolve(&self, peer: &Peer, named: Option<&Authority>, headers: &HeaderMap) -> Option<Peer> {
        let Peer::Tcp { local, remote, tls, .. } = peer else { return None };
        let by_proxy = self.trusted.contains(&remote.ip().to_canonical());
        let over_tls = match tls {
            Tls::Plain => by_proxy,
            Tls::Anonymous | Tls::Device(_) => true,
        };
        let origin = self.origins.iter().find(|origin| named.is_some_and(|named| origin.is(named)))?;
        if origin.scheme == Scheme::Https && !over_tls {
            return None;
        }
        let mut remote = *remote;
        if let (true, Some(client)) = (by_proxy, self.client(headers)) {
            remote.set_ip(client);
        }
        // A certificate of a proxy would be the proxy's, not the caller's.
        let tls = if by_proxy { Tls::Plain } else { tls.clone() };
        Some(Peer::Tcp { local: *local, remote, tls, public: Some(origin.scheme) })
    }

    /// The address that the nearest trusted proxy saw: the last of the list that is none of ours. Where both headers are there, a client wrote one of them, and
    /// neither is believed.
    fn client(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let values = |name: &HeaderName| -> Vec<String> {
            let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            texts.flat_map(|text| text.split(',')).map(|part| part.trim().to_owned()).collect()
        };
        let (standard, common) = (values(&FORWARDED), values(&FORWARDED_FOR));
        let hops: Vec<_> = match (standard.is_empty(), common.is_empty()) {
            (true, false) => common.iter().map(|hop| address(hop)).collect(),
            (false, true) => standard.iter().map(|hop| forwarded_for(hop)).collect(),
            _ => return None,
        };
        // Beyond a hop that cannot be read, nothing is known.
        for hop in hops.into_iter().rev() {
            let hop = hop?;
            if !self.trusted.contains(&hop) {
                return Some(hop);
            }
        }
        None
    }
}

/// The `for` of one element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    address(value.trim().trim_matches('"'))
}

/// An address with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let parsed = text.parse().ok().or_else(|| text.parse::<std::net::SocketAddr>().ok().map(|found| found.ip()));
    let bracketed = || text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))?.parse().ok();
    parsed.or_else(bracketed).map(|found: IpAddr| found.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies() -> Proxies {
        let config = HttpConfig {
            public_origins: vec!["https://agents.example".to_owned(), "http://lab.example:8080".to_owned()],
            trusted_proxies: vec!["10.0.0.1".to_owned()],
            ..palyra_common::config::Config::default().http
        };
        Proxies::new(&config)
    }

    fn resolved(from: &str, host: &str, headers: &[(&'static str, &str)]) -> Option<(String, Scheme)> {
        let remote = std::net::SocketAddr::new(from.parse().unwrap(), 5000);
        let peer = Peer::Tcp { local: "10.0.0.2:7142".parse().unwrap(), remote, tls: Tls::Plain, public: None };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        match proxies().resolve(&peer, host.parse().ok().as_ref(), &map)? {
            Peer::Tcp { remote, public: Some(scheme), .. } => Some((remote.ip().to_string(), scheme)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_trusted_proxy_stands_for_a_public_origin() {
        let by = |address: &str| Some((address.to_owned(), Scheme::Https));
        assert_eq!(resolved("10.0.0.1", "agents.example", &[]), by("10.0.0.1"));
        assert_eq!(resolved("10.0.0.1", "AGENTS.example:443", &[]), by("10.0.0.1"));
        for (from, host) in [
            ("10.0.0.9", "agents.example"),
            ("127.0.0.1", "agents.example"),
            ("10.0.0.1", "agents.example:80"),
            ("10.0.0.1", "agents.example.evil.example"),
            ("10.0.0.1", "lab.example"),
        ] {
            assert_eq!(resolved(from, host, &[("x-forwarded-for", "192.0.2.1")]), None, "{from} {host}");
        }
        // Without TLS nothing needs to be trusted, and nobody is believed.
        let plain = resolved("10.0.0.9", "lab.example:8080", &[("x-forwarded-for", "192.0.2.1")]);
        assert_eq!(plain, Some(("10.0.0.9".to_owned(), Scheme::Http)));
    }

    #[test]
    fn the_client_is_the_one_that_the_nearest_proxy_saw() {
        for (headers, client) in [
            (&[("x-forwarded-for", "203.0.113.5, 192.0.2.1")][..], "192.0.2.1"),
            (&[("x-forwarded-for", "203.0.113.5"), ("x-forwarded-for", "192.0.2.1")], "192.0.2.1"),
            (&[("x-forwarded-for", "192.0.2.1, 10.0.0.1")], "192.0.2.1"),
            (&[("forwarded", "for=203.0.113.5, proto=https;for=\"[2001:db8::1]:99\"")], "2001:db8::1"),
            (&[("forwarded", "for=192.0.2.1"), ("x-forwarded-for", "192.0.2.2")], "10.0.0.1"),
            (&[("x-forwarded-for", "192.0.2.1, unknown")], "10.0.0.1"),
            (&[("forwarded", "for=_hidden")], "10.0.0.1"),
        ] {
            let found = resolved("10.0.0.1", "agents.example", headers).map(|(address, _)| address);
            assert_eq!(found.as_deref(), Some(client), "{headers:?}");
        }
    }
}
