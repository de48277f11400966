//! The rule for addresses that other machines can reach.
//!
//! Such a bind needs TLS, authentication and two acknowledgements in two different places, so that no single slip (a
//! copied file, an inherited environment) opens the daemon to a network.

use std::net::SocketAddr;

use super::error::ConfigProblem;

/// Whether something that a public bind needs is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// It is.
    Present,
    /// It is not.
    Absent,
}

impl Guard {
    /// Present exactly if the condition holds.
    #[must_use]
    pub const fn when(condition: bool) -> Self {
        if condition { Self::Present } else { Self::Absent }
    }
}

/// Everything a public bind needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindGuards {
    /// The interface speaks TLS.
    pub tls: Guard,
    /// The interface authenticates its callers.
    pub authentication: Guard,
    /// `deployment.dangerous_remote_bind_ack = true` in the file.
    pub file_acknowledgement: Guard,
    /// `PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK=true` in the environment.
    pub environment_acknowledgement: Guard,
}

/// Who can reach an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindExposure {
    /// Only programs on this machine.
    Loopback,
    /// Other machines too.
    Public,
}

/// Allows the bind that a key asks for, or names everything that is missing for it. Every interface is held to this one rule.
pub fn check_bind(key: &'static str, bind: SocketAddr, guards: BindGuards) -> Result<BindExposure, ConfigProblem> {
    // Canonical, because `::ffff:127.0.0.1` is the loopback interface too.
    if bind.ip().to_canonical().is_loopback() {
        return Ok(BindExposure::Loopback);
    }
    let missing: Vec<&'static str> = [
        (guards.tls, "TLS on this interface"),
        (guards.authentication, "authentication"),
        (guards.file_acknowledgement, "`deployment.dangerous_remote_bind_ack = true` in the file"),
        (guards.environment_acknowledgement, "PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK=true in the environment"),
    ]
    .into_iter()
    .filter(|(guard, _)| *guard == Guard::Absent)
    .map(|(_, name)| name)
    .collect();
    if missing.is_empty() { Ok(BindExposure::Public) } else { Err(ConfigProblem::PublicBind { key, bind, missing }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_bind_needs_every_guard() {
        let all = [Guard::Present, Guard::Absent];
        for (tls, authentication) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
            for (file, environment) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
                let guards = BindGuards {
                    tls,
                    authentication,
                    file_acknowledgement: file,
                    environment_acknowledgement: environment,
                };
                let absent =
                    [tls, authentication, file, environment].iter().filter(|guard| **guard == Guard::Absent).count();
                for bind in ["0.0.0.0:7142", "[::]:7142", "192.168.1.2:1", "[2001:db8::1]:1", "[::ffff:10.0.0.1]:1"] {
                    match check_bind("daemon.http_bind", bind.parse().unwrap(), guards) {
                        Ok(exposure) => assert!(absent == 0 && exposure == BindExposure::Public, "{bind} {guards:?}"),
                        Err(ConfigProblem::PublicBind { missing, .. }) => assert_eq!(missing.len(), absent, "{bind}"),
                        Err(other) => panic!("{other}"),
                    }
                }
                for bind in ["127.0.0.1:7142", "127.8.9.1:0", "[::1]:7142", "[::ffff:127.0.0.1]:7142"] {
                    let found = check_bind("quic.bind", bind.parse().unwrap(), guards);
                    assert_eq!(found, Ok(BindExposure::Loopback), "{bind}");
                }
            }
        }
    }
}
