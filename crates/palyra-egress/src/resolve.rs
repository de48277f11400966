//! From a name to addresses, once.
//!
//! A name is resolved a single time per request; all its addresses are judged, and the connection is made to one of exactly these
//! addresses ([`Pinned`]). Nothing looks the name up again, so an answer that changes between the check and the connection changes nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::TcpStream;

use crate::address::{AddressClass, classify};
use crate::error::EgressError;
use crate::host::Host;
use crate::rules::{EgressGrant, check_classified};

/// Most addresses of one name that are looked at; more is no honest answer.
const ADDRESS_LIMIT: usize = 32;

/// Where names are resolved.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of a name, or why there are none.
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String>;
}

/// The machine's own resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let found = tokio::net::lookup_host((name, 0)).await.map_err(|error| error.to_string())?;
        let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
        addresses.dedup();
        Ok(addresses)
    }
}

/// The class of an address as seen from this machine: a public address of its own leads to its own services, as loopback does.
fn class_here(address: IpAddr) -> AddressClass {
    match classify(address) {
        AddressClass::Public if is_own(address) => AddressClass::Loopback,
        class => class,
    }
}

/// Asks the routing table, without sending anything: a datagram socket towards an own address gets that same address as its own.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let local = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, 9))?;
        socket.local_addr()
    };
    // An address without a route is nobody's: connecting to it will say so.
    local().is_ok_and(|local| local.ip() == address)
}

/// A host with the addresses it had when it was checked.
#[derive(Debug, Clone)]
pub(crate) struct Pinned {
    host: Host,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl Pinned {
    /// Resolves a host and judges every address.
    pub(crate) async fn resolve(
        resolver: &dyn Resolver,
        grant: &EgressGrant,
        host: &Host,
        port: u16,
    ) -> Result<Self, EgressError> {
        let failed = |reason: String| EgressError::ResolveFailed { host: host.to_string(), reason };
        let addresses = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let limit = grant.limits.connect();
                let answer = tokio::time::timeout(limit, resolver.resolve(name))
                    .await
                    .map_err(|_| EgressError::TimedOut { what: "resolving the name", limit })?;
                answer.map_err(failed)?
            }
        };
        if addresses.is_empty() {
            return Err(failed("it has no address".to_owned()));
        }
        if addresses.len() > ADDRESS_LIMIT {
            return Err(failed(format!("it has more than {ADDRESS_LIMIT} addresses")));
        }
        let classified: Vec<_> = addresses.iter().map(|address| (*address, class_here(*address))).collect();
        check_classified(grant, host, &classified)?;
        Ok(Self { host: host.clone(), port, addresses })
    }

    /// The first address, for the log of a connection that was not made.
    pub(crate) fn first(&self) -> Option<IpAddr> {
        self.addresses.first().copied()
    }

    /// Connects to the addresses in turn until one accepts. Each gets its share of the time, so that one that swallows packets does not
    /// take it all.
    pub(crate) async fn connect(&self, limit: Duration) -> Result<TcpStream, EgressError> {
        let share = limit / u32::try_from(self.addresses.len()).unwrap_or(1).max(1);
        let mut last = std::io::Error::other("no address");
        for address in &self.addresses {
            match tokio::time::timeout(share, TcpStream::connect(SocketAddr::new(*address, self.port))).await {
                Ok(Ok(stream)) => {
                    // Small requests should not wait for an acknowledgement; failing to say so costs only time.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = std::io::ErrorKind::TimedOut.into(),
            }
        }
        Err(match last.kind() {
            std::io::ErrorKind::TimedOut => EgressError::TimedOut { what: "connecting", limit },
            _ => EgressError::ConnectFailed { host: self.host.to_string(), port: self.port, source: last },
        })
    }
}
