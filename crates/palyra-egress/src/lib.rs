//! The way out of Palyra.
//!
//! All outbound traffic of tools and sandboxes goes through this crate: a grant says what may be reached ([`EgressGrant`], [`check`]), a forward proxy
//! serves sandboxes ([`Egress::serve`]), a client serves tools of this process ([`EgressClient`]), and both put secrets in and look for them in what
//! comes back. Who gets which grant is policy's decision; where secrets live, where records go and how names are resolved are ports that the daemon fills
//! ([`SecretSource`], [`ConnectionLog`], [`Resolver`]).

mod address;
mod client;
mod dns;
mod egress;
mod error;
mod host;
mod log;
mod outbound;
mod proxy;
mod readable;
mod resolve;
mod rules;
mod scan;
mod secrets;
mod target;
mod tls;

pub use address::{AddressClass, classify};
pub use client::{CacheMode, CacheStore, CachedAnswer, EgressClient, FetchRequest, FetchResponse, MemoryCache, Served};
pub use dns::NameServer;
pub use egress::{Egress, EgressOptions};
pub use error::{EgressError, Refusal, RefusalReason};
pub use host::{Host, HostProblem};
pub use log::{ConnectionLog, ConnectionRecord, ConnectionVerdict, MemoryLog, NoLog, Via};
pub use proxy::{
    ClientHello, HelloOutcome, ProxyAccess, ProxyHandle, ProxyOptions, SocksGreeting, SocksOutcome, SocksRequest, bind,
    listener_from_fd, read_client_hello, read_socks_greeting, read_socks_request,
};
pub use readable::{ContentKind, Link, Readable, readable};
pub use resolve::{Resolver, SystemResolver};
pub use rules::{
    CredentialBinding, CredentialPlace, CredentialTransport, EgressGrant, EgressLimits, GrantLine, HostPattern, Inside,
    Intercept, Methods, PrivateHost, Request, Rule, Verdict, check, check_addresses, check_connect,
};
pub use secrets::{NoSecrets, SecretSource};
pub use target::{Scheme, Target};
pub use tls::{SandboxAuthority, Trust};
