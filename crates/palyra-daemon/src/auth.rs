//! Who may come in.
//!
//! On the Unix socket the kernel says who calls. On loopback HTTP the caller shows the local token, and the request must be
//! addressed to this machine by name: a web page that pointed its own name at 127.0.0.1 is refused before anything is
//! answered. No header ever says who somebody is.

use std::net::SocketAddr;

use http::header::{AUTHORIZATION, HOST};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};
use palyra_common::{ErrorCategory, StableErrorEnvelope};

use crate::token::Token;

/// How a connection came in, as far as the system itself can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Over the Unix socket, by a process of this user.
    Unix {
        /// The user.
        uid: u32,
    },
    /// Over loopback HTTP, by anybody on this machine.
    Loopback {
        /// The address they connected to.
        local: SocketAddr,
    },
}

/// Whether a route answers strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It does.
    Open,
    /// It answers only those whom the gate knows.
    Known,
}

/// Somebody whom the gate knows, and how they came; both go into the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Principal {
    user: String,
    via: String,
}

impl Principal {
    /// Who it is: whoever the daemon belongs to, by whichever door they came.
    pub(crate) fn as_str(&self) -> &str {
        &self.user
    }

    /// The door, and who the system says is behind it.
    pub(crate) fn via(&self) -> &str {
        &self.via
    }
}

/// The one place that lets callers in.
#[derive(Debug)]
pub(crate) struct Gate {
    own_uid: u32,
    /// Absent where HTTP is switched off; then no token opens anything.
    token: Option<Token>,
}

impl Gate {
    pub(crate) fn new(token: Option<Token>) -> Self {
        Self { own_uid: rustix::process::geteuid().as_raw(), token }
    }

    /// Lets a request in: `None` for a stranger at an open route.
    pub(crate) fn admit(
        &self,
        peer: Option<Peer>,
        headers: &HeaderMap,
        access: Access,
    ) -> Result<Option<Principal>, StableErrorEnvelope> {
        match peer {
            Some(Peer::Unix { uid }) if uid == self.own_uid || uid == 0 => {
                Ok(Some(self.owner(format!("unix socket, uid {uid}"))))
            }
            Some(Peer::Unix { .. }) if access == Access::Open => Ok(None),
            Some(Peer::Unix { uid }) => Err(StableErrorEnvelope::new(
                "peer_refused",
                ErrorCategory::Auth,
                format!("user {uid} may not use the daemon of user {}", self.own_uid),
            )
            .hint("start a daemon of your own; each user has one")),
            Some(Peer::Loopback { local }) => {
                check_host(headers, local)?;
                if access == Access::Open {
                    return Ok(None);
                }
                self.check_token(headers).map(Some)
            }
            // A connection without a peer was not accepted by our own listeners.
            None => Err(token_refused("the caller is not known")),
        }
    }

    /// The one person of this daemon. Root acts for them, which the journal shows.
    fn owner(&self, via: String) -> Principal {
        Principal { user: format!("uid:{}", self.own_uid), via }
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<Principal, StableErrorEnvelope> {
        let Some(shown) = only(headers, &AUTHORIZATION).and_then(bearer) else {
            return Err(token_refused("the request carries no bearer token"));
        };
        match &self.token {
            Some(token) if token.is(shown) => Ok(self.owner("http, local token".to_owned())),
            _ => Err(token_refused("the bearer token is wrong")),
        }
    }
}

fn token_refused(message: &str) -> StableErrorEnvelope {
    StableErrorEnvelope::new("token_refused", ErrorCategory::Auth, message).hint(
        "send `Authorization: Bearer` with the content of `local.token` in the state root, or use the Unix socket",
    )
}

/// The value of a header that is there exactly once, as text.
fn only<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value: &HeaderValue = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The request must name this machine and this port. A browser sends the name that its page was loaded from, so a page of
/// another site fails here whatever its name resolves to.
fn check_host(headers: &HeaderMap, local: SocketAddr) -> Result<(), StableErrorEnvelope> {
    let named = only(headers, &HOST).and_then(|host| host.parse::<Authority>().ok());
    let fits = named.as_ref().is_some_and(|authority| {
        let own = match local {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        };
        let host = authority.host();
        let host_fits = host.eq_ignore_ascii_case("localhost") || ["127.0.0.1", "[::1]", &own].contains(&host);
        // Port 80 is what a missing port means.
        host_fits && authority.port_u16().unwrap_or(80) == local.port() && !authority.as_str().contains('@')
    });
    if fits {
        return Ok(());
    }
    Err(StableErrorEnvelope::new(
        "host_refused",
        ErrorCategory::Policy,
        "the request is not addressed to this machine by its loopback name",
    )
    .hint(format!("use http://127.0.0.1:{} or http://localhost:{}", local.port(), local.port())))
}

#[cfg(test)]
mod tests {
    use palyra_common::SecretString;

    use super::*;

    fn gate() -> Gate {
        Gate { own_uid: 1000, token: Some(Token::from(SecretString::new("right".to_owned()))) }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn loopback(pairs: &[(&'static str, &str)], access: Access) -> Result<Option<String>, String> {
        let peer = Some(Peer::Loopback { local: "127.0.0.1:7142".parse().unwrap() });
        gate()
            .admit(peer, &headers(pairs), access)
            .map(|principal| principal.map(|principal| principal.via().to_owned()))
            .map_err(|envelope| envelope.code)
    }

    #[test]
    fn the_unix_socket_is_for_its_owner_and_root() {
        let admit = |uid| gate().admit(Some(Peer::Unix { uid }), &HeaderMap::new(), Access::Known);
        assert_eq!(admit(1000).unwrap().unwrap().as_str(), "uid:1000");
        assert_eq!(admit(0).unwrap().unwrap().as_str(), "uid:1000", "root acts for the owner");
        assert_eq!(admit(0).unwrap().unwrap().via(), "unix socket, uid 0");
        assert_eq!(admit(1001).unwrap_err().code, "peer_refused");
        assert_eq!(gate().admit(None, &HeaderMap::new(), Access::Open).unwrap_err().code, "token_refused");
    }

    #[test]
    fn loopback_needs_the_token() {
        let host = ("host", "127.0.0.1:7142");
        assert_eq!(loopback(&[host], Access::Open), Ok(None));
        assert_eq!(
            loopback(&[host, ("authorization", "Bearer right")], Access::Known),
            Ok(Some("http, local token".into()))
        );
        assert_eq!(
            loopback(&[host, ("authorization", "bearer right")], Access::Known),
            Ok(Some("http, local token".into()))
        );
        for wrong in ["Bearer wrong", "Bearer ", "Basic right", "right", "Bearer right right"] {
            let answer = loopback(&[host, ("authorization", wrong)], Access::Known);
            assert_eq!(answer, Err("token_refused".into()), "{wrong}");
        }
        assert_eq!(loopback(&[host], Access::Known), Err("token_refused".into()));
        let twice = [host, ("authorization", "Bearer right"), ("authorization", "Bearer right")];
        assert_eq!(loopback(&twice, Access::Known), Err("token_refused".into()));
        // Who somebody is never comes from a header.
        assert_eq!(loopback(&[host, ("x-user", "0")], Access::Known), Err("token_refused".into()));
    }

    #[test]
    fn a_page_that_rebinds_its_name_is_refused_everywhere() {
        for good in ["localhost:7142", "LOCALHOST:7142", "127.0.0.1:7142", "[::1]:7142"] {
            assert_eq!(loopback(&[("host", good)], Access::Open), Ok(None), "{good}");
        }
        for bad in [
            "evil.example:7142",
            "127.0.0.1",
            "127.0.0.1:7143",
            "localhost.evil.example:7142",
            "x@localhost:7142",
            "",
            "127.0.0.2:7142",
        ] {
            assert_eq!(loopback(&[("host", bad)], Access::Open), Err("host_refused".into()), "{bad}");
        }
        assert_eq!(loopback(&[], Access::Open), Err("host_refused".into()));
        let twice = [("host", "localhost:7142"), ("host", "localhost:7142")];
        assert_eq!(loopback(&twice, Access::Open), Err("host_refused".into()));
    }
}
