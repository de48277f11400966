//! The decision about one request: which rule allows it, or which line is missing.
//!
//! Three pure questions, asked in this order by the proxy and the client alike: may this request be made ([`check`]), may this host and port be
//! connected to before anything was said ([`check_connect`]), and may these addresses be reached under this name ([`check_addresses`]).

use std::net::IpAddr;

use super::grant::{EgressGrant, GrantLine, Intercept, PrivateHost};
use super::path::{self, PathMatch};
use super::rule::{HostPattern, Methods, Rule};
use crate::address::{AddressClass, classify};
use crate::error::{Refusal, RefusalReason};
use crate::host::Host;
use crate::target::{Scheme, Target};

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// How the host is spoken to.
    pub scheme: Scheme,
    /// The host.
    pub host: &'a Host,
    /// The port.
    pub port: u16,
    /// Method and path; `None` for a tunnel that is passed on unseen.
    pub inside: Option<Inside<'a>>,
}

/// What is visible of a request that is not tunnelled.
#[derive(Debug, Clone, Copy)]
pub struct Inside<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// The path, without the query.
    pub path: &'a str,
}

impl<'a> Request<'a> {
    /// A request whose method and path are known.
    #[must_use]
    pub fn visible(target: &'a Target, method: &'a str) -> Self {
        let inside = Some(Inside { method, path: &target.path });
        Self { scheme: target.scheme, host: &target.host, port: target.port, inside }
    }

    /// A tunnel that is passed on unseen.
    #[must_use]
    pub const fn tunnel(scheme: Scheme, host: &'a Host, port: u16) -> Self {
        Self { scheme, host, port, inside: None }
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// This rule allows it.
    Allowed(&'a Rule),
    /// The rule allows some of what a tunnel may hide: it has to be opened.
    Inspect(&'a Rule),
    /// No rule allows it.
    Refused(Refusal),
}

/// Decides about a request.
#[must_use]
pub fn check<'a>(grant: &'a EgressGrant, request: &Request<'_>) -> Verdict<'a> {
    if let Some(problem) = request.inside.and_then(|inside| path::problem(inside.path)) {
        return Verdict::Refused(Refusal::new(
            RefusalReason::PathSpelling,
            format!("the request is refused: {problem}"),
        ));
    }
    // The nearest miss is reported: a rule that agrees on more tells a person more.
    let mut nearest = Miss::Host;
    let mut to_inspect = None;
    // A host that is sent a secret could hand it back through a tunnel, where nobody looks for it.
    let hides_a_secret =
        request.inside.is_none() && grant.credentials.iter().any(|credential| &credential.host == request.host);
    for rule in &grant.rules {
        let miss = match compare(rule, request) {
            Match::Covers if !hides_a_secret => return Verdict::Allowed(rule),
            Match::Covers | Match::NeedsInspection => {
                to_inspect = to_inspect.or(Some(rule));
                continue;
            }
            Match::Misses(miss) => miss,
        };
        nearest = nearest.max(miss);
    }
    match to_inspect {
        Some(rule) if rule.scheme == Scheme::Https && grant.intercept == Intercept::WhenGranted => {
            Verdict::Inspect(rule)
        }
        Some(rule) => {
            let because =
                if hides_a_secret { "a secret is bound to this host" } else { "the rule names methods or a path" };
            let message = format!(
                "a tunnel to `{}` port {} is refused: {because}, and a tunnel's traffic cannot be inspected",
                request.host, request.port
            );
            let refusal = Refusal::new(RefusalReason::InspectionNeeded, message);
            Verdict::Refused(match rule.scheme {
                Scheme::Https => refusal.missing(GrantLine::Intercept(Intercept::WhenGranted)),
                Scheme::Http | Scheme::Tcp => refusal,
            })
        }
        None => Verdict::Refused(refusal(nearest, request)),
    }
}

/// Whether some rule may allow a connection to this host and port, before it is known what will be said over it.
pub fn check_connect(grant: &EgressGrant, host: &Host, port: u16) -> Result<(), Refusal> {
    let named = |rule: &&Rule| rule.host.matches(host);
    if grant.rules.iter().filter(named).any(|rule| rule.port == port) {
        return Ok(());
    }
    let miss = if grant.rules.iter().any(|rule| named(&rule)) { Miss::Port } else { Miss::Host };
    let scheme = if port == 80 { Scheme::Http } else { Scheme::Https };
    Err(refusal(miss, &Request::tunnel(scheme, host, port)))
}

/// Whether all these addresses may be reached under this name. One address that may not be refuses them all: an answer that mixes public
/// and private addresses is an attempt to get the private one through.
pub fn check_addresses(grant: &EgressGrant, host: &Host, addresses: &[IpAddr]) -> Result<(), Refusal> {
    let classified: Vec<_> = addresses.iter().map(|address| (*address, classify(*address))).collect();
    check_classified(grant, host, &classified)
}

/// As [`check_addresses`], for addresses of which more is known than they show themselves.
pub(crate) fn check_classified(
    grant: &EgressGrant,
    host: &Host,
    addresses: &[(IpAddr, AddressClass)],
) -> Result<(), Refusal> {
    for (address, class) in addresses {
        let class = *class;
        let allowed =
            class == AddressClass::Public || grant.private_hosts.iter().any(|line| line.allows(host, *address, class));
        if allowed {
            continue;
        }
        let message = match host {
            Host::Name(name) => {
                format!("`{name}` is refused: it resolves to `{address}`, which is not public ({class})")
            }
            Host::Address(_) => format!("`{address}` is refused: it is not public ({class})"),
        };
        let refusal = Refusal::new(RefusalReason::AddressNotPublic, message);
        let by_name = match class {
            AddressClass::Shared => Some(AddressClass::Private),
            AddressClass::Private | AddressClass::Loopback | AddressClass::LinkLocal | AddressClass::Benchmarking => {
                Some(class)
            }
            _ => None,
        };
        return Err(match (host, by_name) {
            (Host::Address(_), _) => refusal.missing(GrantLine::PrivateHost(PrivateHost { host: host.clone(), class })),
            (Host::Name(_), Some(class)) => {
                refusal.missing(GrantLine::PrivateHost(PrivateHost { host: host.clone(), class }))
            }
            (Host::Name(_), None) => refusal,
        });
    }
    Ok(())
}

/// How far a rule agrees with a request, from little to much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Miss {
    Host,
    Port,
    Scheme,
    Path,
    UnclearPath,
    Method,
}

enum Match {
    Covers,
    NeedsInspection,
    Misses(Miss),
}

fn compare(rule: &Rule, request: &Request<'_>) -> Match {
    if !rule.host.matches(request.host) {
        return Match::Misses(Miss::Host);
    }
    if rule.port != request.port {
        return Match::Misses(Miss::Port);
    }
    if rule.scheme != request.scheme {
        return Match::Misses(Miss::Scheme);
    }
    let Some(inside) = request.inside else {
        return if rule.covers_everything_inside() { Match::Covers } else { Match::NeedsInspection };
    };
    match path::compare(&rule.path_prefix, inside.path) {
        PathMatch::Outside => return Match::Misses(Miss::Path),
        PathMatch::Unclear => return Match::Misses(Miss::UnclearPath),
        PathMatch::Inside => {}
    }
    if rule.methods.contains(inside.method) { Match::Covers } else { Match::Misses(Miss::Method) }
}

fn refusal(miss: Miss, request: &Request<'_>) -> Refusal {
    let Request { scheme, host, port, inside } = request;
    let what = match inside {
        Some(inside) => format!("`{} {scheme}://{host}:{port}{}`", inside.method.escape_debug(), inside.path),
        None => format!("a connection to `{host}` port {port}"),
    };
    let (reason, because) = match miss {
        Miss::Host => (RefusalReason::HostNotGranted, "no rule allows this host"),
        Miss::Port => (RefusalReason::PortNotGranted, "the rules allow this host on another port only"),
        Miss::Scheme => (RefusalReason::SchemeNotGranted, "the rules allow this host with another scheme only"),
        Miss::Path => (RefusalReason::PathNotGranted, "the rules allow other paths of this host only"),
        Miss::UnclearPath => (RefusalReason::PathSpelling, "the path could be interpreted as one outside the rule"),
        Miss::Method => (RefusalReason::MethodNotGranted, "the rules allow other methods for this host only"),
    };
    let refusal = Refusal::new(reason, format!("{what} is refused: {because}"));
    // A host that cannot be written in a rule, such as an unclear path, has no line that would help.
    match missing_rule(request) {
        Some(rule) if reason != RefusalReason::PathSpelling => refusal.missing(GrantLine::Rule(rule)),
        _ => refusal,
    }
}

/// The narrowest rule that covers a request.
fn missing_rule(request: &Request<'_>) -> Option<Rule> {
    let (methods, path_prefix) = match request.inside {
        Some(inside) => {
            let path =
                if path::problem_of_prefix(inside.path).is_none() && inside.path != "*" { inside.path } else { "/" };
            (Methods::Only([inside.method.to_owned()].into()), path.to_owned())
        }
        None => (Methods::Any, "/".to_owned()),
    };
    let host = HostPattern::Exact(request.host.clone());
    let rule = Rule { scheme: request.scheme, host, port: request.port, methods, path_prefix };
    // Only a line that can be read back is worth showing.
    Rule::parse(&rule.to_string()).ok()
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
