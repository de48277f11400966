//! Certificates: the authority of this installation, what it issues, what it took back, and TLS made of them.
//!
//! One authority signs everything. A server certificate proves the daemon to its clients; a client certificate names a device and the
//! principal it acts for. Certificates live for weeks and are renewed when a third of that is left. One that was taken back is refused
//! by its serial number at every handshake; where client certificates are asked for, sessions are not resumed, because a resumed
//! session would skip that check.

mod authority;
mod client;
mod identity;
mod issue;
mod issued;
mod pem;
mod revocations;
mod serial;
mod server;
mod tls;
mod verify;

pub use authority::{Authority, AuthorityOptions};
pub use client::{ClientCredentials, server_only_client_config};
pub use identity::DeviceIdentity;
pub use issue::{ClientRequest, MAX_CLIENT_LIFE};
pub use issued::IssuedCertificate;
pub use revocations::Revocation;
pub use serial::Serial;
pub use tls::{ClientAuth, TlsVersions};
