//! Who may come in.
//!
//! On the Unix socket the kernel says who calls. Everywhere else the caller shows a credential: the local token, an API token, a certificate
//! that this daemon issued, or the console's cookie, which needs a proof of its own for every change. No header ever says who somebody is.

mod counted;
mod host;
mod proxy;
mod standing;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Method, Uri};
use palyra_common::config::HttpConfig;
use palyra_common::{Clock, ErrorCategory, PrincipalRole, StableErrorEnvelope, ToStableError as _};
use palyra_identity::{
    Bounds, ConsoleOptions, ConsoleSessions, IdentityError, OpenedSession, Principal, PrincipalId, RateLimiter,
    RateOptions, Refusal, Source, Throttle, ThrottleOptions, TokenId, Via, check_origin, read_cookie,
};
use palyra_telemetry::Metrics;

use self::counted::Credential;
pub(crate) use self::host::{check_host, named_host};
use self::host::{is_loopback_name, only};
pub(crate) use self::proxy::{Proxies, Scheme};
use self::standing::Standing;
use crate::dispatch::Tokens;
use crate::serve::Connection;
use crate::tls::{Device, Identity};
use crate::token::Token;

pub(crate) use self::standing::Lease;

/// Proof that a change of the console was asked for by the console itself.
pub(crate) const CSRF: HeaderName = HeaderName::from_static("x-palyra-csrf");

/// How a connection came in, as far as the system itself can tell.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    /// Over the Unix socket, by a process of this user.
    Unix {
        /// The user.
        uid: u32,
    },
    /// Over TCP.
    Tcp {
        /// The address they connected to.
        local: SocketAddr,
        /// Where they come from.
        remote: SocketAddr,
        /// What TLS says about them.
        tls: Tls,
        /// The scheme of the configured public origin that the request names, if it names one.
        public: Option<Scheme>,
    },
}

/// What TLS says about a connection.
#[derive(Debug, Clone)]
pub(crate) enum Tls {
    /// There is none.
    Plain,
    /// The peer showed no certificate.
    Anonymous,
    /// The peer showed a certificate of ours.
    Device(Arc<Device>),
}

impl Peer {
    fn remote(&self) -> Option<IpAddr> {
        match self {
            Self::Unix { .. } => None,
            Self::Tcp { remote, .. } => Some(remote.ip()),
        }
    }

    /// How the console's cookie has to be sent.
    pub(crate) fn cookie_transport(&self) -> palyra_identity::Transport {
        match self {
            Self::Tcp { public: Some(Scheme::Https), .. } | Self::Tcp { tls: Tls::Anonymous | Tls::Device(_), .. } => {
                palyra_identity::Transport::Tls
            }
            Self::Tcp { tls: Tls::Plain, .. } | Self::Unix { .. } => palyra_identity::Transport::Plain,
        }
    }
}

/// Which credentials a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// None: it answers strangers, and nobody else either: what is shown is not looked at.
    Open,
    /// Strangers are answered, and those of programs better. One that is shown has to be good.
    Either,
    /// Those of programs.
    Known,
    /// The console's cookie.
    Console,
}

/// The one place that lets callers in.
pub(crate) struct Gate {
    own_uid: u32,
    /// Absent where HTTP is switched off; then no local token opens anything.
    local: Option<Token>,
    standing: Arc<Standing>,
    rates: RateLimiter,
    throttle: Throttle,
    /// Names besides loopback under which this machine may be addressed.
    names: Vec<String>,
    proxies: Proxies,
    metrics: Metrics,
}

/// What of a request the gate looks at.
pub(crate) struct Shown<'a> {
    pub(crate) peer: Option<&'a Peer>,
    pub(crate) connection: Option<&'a Connection>,
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
}

impl Gate {
    pub(crate) fn new(
        local: Option<Token>,
        tokens: Arc<Tokens>,
        identity: Identity,
        http: &HttpConfig,
        rates: RateOptions,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
    ) -> Result<Self, IdentityError> {
        let console = ConsoleSessions::new(ConsoleOptions::default(), Arc::clone(&clock))?;
        Ok(Self {
            own_uid: rustix::process::geteuid().as_raw(),
            local,
            standing: Arc::new(Standing::new(tokens, identity, console, Arc::clone(&clock))),
            rates: RateLimiter::new(rates, Arc::clone(&clock)),
            throttle: Throttle::new(ThrottleOptions::default(), clock),
            names: http.allowed_hosts.clone(),
            proxies: Proxies::new(http),
            metrics,
        })
    }

    /// The API tokens.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.standing.tokens
    }

    /// The authority that devices are known by.
    pub(crate) fn identity(&self) -> &Identity {
        &self.standing.identity
    }

    /// The right of a caller to go on with something that lasts.
    pub(crate) fn lease(&self, principal: &Principal) -> Lease {
        Lease::new(&self.standing, principal)
    }

    /// A credential was taken back: whatever lasts looks at its own now.
    pub(crate) fn look_again(&self) {
        self.standing.look_again();
    }

    /// The peer of a request that names a public origin: who is behind the proxy, and how their browser speaks to it.
    pub(crate) fn public_peer(&self, peer: &Peer, uri: &Uri, headers: &HeaderMap) -> Option<Peer> {
        // Reading the named host costs more than all else that is asked of a request without a credential.
        if !self.proxies.has_origins() {
            return None;
        }
        self.proxies.resolve(peer, named_host(uri, headers).as_ref(), headers)
    }

    /// Lets a request in: `None` for a stranger at an open route.
    pub(crate) fn admit(&self, shown: &Shown<'_>, access: Access) -> Result<Option<Principal>, StableErrorEnvelope> {
        let admitted = self.look_at(shown, access);
        if let Err(refusal) = &admitted {
            counted::refusal(&self.metrics, Credential::of(shown.headers), refusal);
        }
        // From now on the connection outlasts those of strangers.
        if let (Ok(Some(principal)), Some(connection)) = (&admitted, shown.connection) {
            connection.authenticated(&principal.id)?;
        }
        admitted
    }

    fn look_at(&self, shown: &Shown<'_>, access: Access) -> Result<Option<Principal>, StableErrorEnvelope> {
        // A connection without a peer was not accepted by our own listeners.
        let Some(peer) = shown.peer else { return Err(no_token("the caller is not authenticated")) };
        if let Peer::Tcp { local, public, .. } = peer
            && !(public.is_none() && is_plain(shown, local.port()))
        {
            let named = named_host(shown.uri, shown.headers);
            if public.is_none() {
                check_host(named.as_ref(), *local, &self.names)?;
            }
            // A browser says where a page comes from that asks; programs say nothing.
            if let Some(host) = &named
                && shown.headers.contains_key(ORIGIN)
            {
                let origin = only(shown.headers, &ORIGIN).unwrap_or("null");
                check_scheme(origin, *public)?;
                check_origin(Some(origin), host.as_str()).map_err(|refusal| refusal.to_stable())?;
            }
        }
        match (access, peer) {
            (Access::Open, _) => Ok(None),
            // Another user of this machine is a stranger like any other.
            (Access::Either, Peer::Unix { uid }) => Ok(self.unix(*uid).ok()),
            (Access::Either, Peer::Tcp { tls: Tls::Plain | Tls::Anonymous, .. })
                if !shown.headers.contains_key(AUTHORIZATION) =>
            {
                Ok(None)
            }
            (Access::Console, _) => self.console_caller(peer, shown).map(Some),
            (Access::Known, Peer::Unix { uid }) => self.unix(*uid).map(Some),
            (Access::Known | Access::Either, Peer::Tcp { tls: Tls::Device(device), .. })
                if !shown.headers.contains_key(AUTHORIZATION) =>
            {
                device.principal().map(Some).map_err(|refusal| refusal.to_stable())
            }
            (Access::Known | Access::Either, Peer::Tcp { .. }) => {
                let Some(shown) = only(shown.headers, &AUTHORIZATION).and_then(bearer) else {
                    return Err(no_token("the request carries no bearer token"));
                };
                self.whose(shown, peer.remote()).map(Some)
            }
        }
    }

    /// Whoever is at the other end of the Unix socket.
    fn unix(&self, uid: u32) -> Result<Principal, StableErrorEnvelope> {
        if uid == self.own_uid || uid == 0 {
            return Ok(self.owner(Via::UnixSocket { uid }));
        }
        Err(StableErrorEnvelope::new(
            "peer_refused",
            ErrorCategory::Auth,
            format!("user {uid} may not use the daemon of user {}", self.own_uid),
        )
        .hint("start a daemon of your own; each user has one"))
    }

    /// Whom a bearer token stands for.
    pub(crate) fn bearer(&self, text: &str, remote: Option<IpAddr>) -> Result<Principal, StableErrorEnvelope> {
        let found = self.whose(text, remote);
        if let Err(refusal) = &found {
            counted::refusal(&self.metrics, Credential::Shown, refusal);
        }
        found
    }

    /// The same, not counted. Somebody who guesses has to wait longer each time; whoever shares their address and shows a good token does not.
    fn whose(&self, text: &str, remote: Option<IpAddr>) -> Result<Principal, StableErrorEnvelope> {
        let source = remote.map(Source::of);
        let found = match &self.local {
            Some(token) if token.is(text) => Ok(self.owner(Via::LocalToken)),
            _ => self.standing.tokens.verify(text, self.standing.clock.now()),
        };
        if let (Err(Refusal::Unknown), Some(source)) = (&found, source) {
            self.throttle.check(source).map_err(|refusal| refusal.to_stable())?;
            self.throttle.failed(source);
        }
        found.map_err(|refusal| match refusal {
            Refusal::Unknown => no_token("the bearer token is wrong"),
            other => other.to_stable(),
        })
    }

    /// Whoever has the console's cookie, and for a change the proof that goes with it.
    fn console_caller(&self, peer: &Peer, shown: &Shown<'_>) -> Result<Principal, StableErrorEnvelope> {
        let cookies = cookies(shown.headers);
        let cookie = read_cookie(peer.cookie_transport(), &cookies);
        let Some(cookie) = cookie else { return Err(Refusal::Unknown.to_stable()) };
        let resolved = if shown.method == Method::GET || shown.method == Method::HEAD {
            self.standing.console.resolve(cookie)
        } else {
            self.standing.console.resolve_change(cookie, only(shown.headers, &CSRF).unwrap_or_default())
        };
        let principal = resolved.map_err(|refusal| refusal.to_stable())?;
        // A session does not outlive the token that it was opened with.
        self.still_good(&principal).map_err(|refusal| refusal.to_stable())?;
        Ok(principal)
    }

    /// Opens a session of the console for whoever shows a token.
    pub(crate) fn log_in(&self, token: &str, peer: &Peer) -> Result<OpenedSession, StableErrorEnvelope> {
        let principal = self.bearer(token, peer.remote())?;
        self.standing.console.open(&principal).map_err(|error| error.to_stable())
    }

    /// Ends the session of a cookie, if there is one.
    pub(crate) fn log_out(&self, peer: &Peer, headers: &HeaderMap) {
        if let Some(cookie) = read_cookie(peer.cookie_transport(), &cookies(headers)) {
            self.standing.console.close(cookie);
            self.look_again();
        }
    }

    /// Ends the sessions of the console that were opened with a token.
    pub(crate) fn log_out_opened_by(&self, token: &TokenId) {
        self.standing.console.close_opened_by(token);
        self.look_again();
    }

    /// The proof that goes with a cookie.
    pub(crate) fn csrf_token(&self, peer: &Peer, headers: &HeaderMap) -> Result<String, StableErrorEnvelope> {
        let cookies = cookies(headers);
        let cookie = read_cookie(peer.cookie_transport(), &cookies);
        self.standing.console.csrf_token(cookie.unwrap_or_default()).map_err(|refusal| refusal.to_stable())
    }

    /// What stands behind a credential that somebody else lent: a session of the console is as good as what it was opened with.
    pub(crate) fn behind(&self, via: &Via) -> Option<Via> {
        match via {
            Via::Console { session } => self.standing.console.opened_by(session),
            Via::CanvasLink { made_with, .. } => Some(*made_with.clone()),
            other => Some(other.clone()),
        }
    }

    /// The most that a caller can hand on.
    pub(crate) fn bounds(&self, principal: &Principal) -> Result<Bounds, Refusal> {
        let behind = self.behind(&principal.via).ok_or(Refusal::Expired)?;
        let until = self.standing.check(&principal.via)?;
        // What the machine's own device makes is the local owner's.
        let behind = if self.is_local_owner(&behind) { Via::LocalToken } else { behind };
        Ok(Bounds::of(principal, &behind, until))
    }

    /// Whether a credential is the local owner's: only whoever can read their files has it.
    pub(crate) fn is_local_owner(&self, via: &Via) -> bool {
        match via {
            Via::UnixSocket { .. } | Via::LocalToken => true,
            Via::Device { id, .. } => self.standing.identity.local_device() == Some(*id),
            Via::ApiToken { .. } | Via::Console { .. } | Via::CanvasLink { .. } => false,
        }
    }

    /// Somebody tried something that only luck could make right. Whoever does so again and again has to wait.
    pub(crate) fn guessed(&self, peer: &Peer) -> Result<(), StableErrorEnvelope> {
        let Some(source) = peer.remote().map(Source::of) else { return Ok(()) };
        self.throttle.check(source).map_err(|refusal| refusal.to_stable())?;
        self.throttle.failed(source);
        Ok(())
    }

    /// Refuses whoever asks faster than they may. The owner at the machine itself may ask as fast as they like.
    pub(crate) fn check_rate(&self, principal: &Principal) -> Result<(), Refusal> {
        match principal.via {
            Via::UnixSocket { .. } | Via::LocalToken => Ok(()),
            _ => self.rates.admit(principal),
        }
    }

    /// Whether a credential that was good when a connection began still is.
    ///
    /// # Errors
    /// Why it is not.
    pub(crate) fn still_good(&self, principal: &Principal) -> Result<(), Refusal> {
        self.standing.check(&principal.via).map(|_| ())
    }

    /// The one whose daemon this is. Root acts for them, which the journal shows.
    fn owner(&self, via: Via) -> Principal {
        Principal::new(PrincipalId::uid(self.own_uid), PrincipalRole::Owner, via)
    }
}

/// Whether a request names this machine as nearly every program does, and no page of a browser asks.
fn is_plain(shown: &Shown<'_>, port: u16) -> bool {
    shown.uri.authority().is_none()
        && !shown.headers.contains_key(ORIGIN)
        && only(shown.headers, &HOST).is_some_and(|host| is_loopback_name(host, port))
}

fn no_token(message: &str) -> StableErrorEnvelope {
    StableErrorEnvelope::new("token_refused", ErrorCategory::Auth, message).hint(
        "send `Authorization: Bearer` with an API token or the content of `local.token` in the state root, or use the Unix socket",
    )
}

/// A page of a public origin has that origin's scheme; the rest of it is compared with the named host.
fn check_scheme(origin: &str, public: Option<Scheme>) -> Result<(), StableErrorEnvelope> {
    let fits = match public {
        None => true,
        Some(Scheme::Http) => origin.starts_with("http://"),
        Some(Scheme::Https) => origin.starts_with("https://"),
    };
    if fits { Ok(()) } else { Err(Refusal::Origin { origin: origin.chars().take(80).collect() }.to_stable()) }
}

/// All cookies as one header. HTTP/2 lets a client send each in a field of its own, which RFC 9113 has a server join.
fn cookies(headers: &HeaderMap) -> String {
    let fields: Vec<_> = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).collect();
    fields.join("; ")
}

/// The token of a value of `Authorization`.
pub(crate) fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_in_several_fields_are_read_as_one() {
        let mut headers = HeaderMap::new();
        let plain = palyra_identity::Transport::Plain;
        for field in ["theme=dark", "palyra-console=abc", "other=1"] {
            headers.append(COOKIE, field.parse().unwrap());
        }
        assert_eq!(read_cookie(plain, &cookies(&headers)), Some("abc"));
        headers.append(COOKIE, "palyra-console=evil".parse().unwrap());
        assert_eq!(read_cookie(plain, &cookies(&headers)), None, "two values of one name are refused");
    }
}
