//! HTTP and gRPC over TLS: accepts like any other door, and shakes hands in the task of the connection.
//!
//! A caller may show a device certificate. One that is shown and not good ends the handshake; without one the caller needs a token, as without TLS.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use palyra_common::config::HttpConfig;
use palyra_identity::{Authority, ClientAuth, TlsVersions};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::device::Device;
use super::identity::Identity;
use super::plain;
use crate::auth::{Peer, Tls};
use crate::error::DaemonError;
use crate::serve::{Door, Origin, tcp_origin};

const ALPN: &[&[u8]] = &[b"h2", b"http/1.1"];

/// A listener that speaks TLS.
pub(crate) struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    authority: Arc<Authority>,
}

impl std::fmt::Debug for TlsListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TlsListener").field(&self.listener).finish()
    }
}

/// TLS for a door, made before anything is bound: a daemon that cannot speak it does not start.
pub(crate) struct TlsSetup {
    config: Arc<ServerConfig>,
    authority: Arc<Authority>,
}

impl TlsSetup {
    /// TLS as the operator asked for it.
    pub(crate) async fn new(identity: &Identity, config: &HttpConfig) -> Result<Self, DaemonError> {
        let authority = identity.authority().await?;
        let mut server = authority.server_config(ALPN, ClientAuth::Optional, TlsVersions::Tls12AndLater)?;
        if let (Some(certificate), Some(key)) = (&config.tls_certificate, &config.tls_key) {
            server = with_own(&server, identity, certificate, key).await?;
        }
        Ok(Self { config: server, authority })
    }

    /// Speaks it at a listener.
    pub(crate) fn at(self, listener: TcpListener) -> TlsListener {
        TlsListener { listener, acceptor: TlsAcceptor::from(self.config), authority: self.authority }
    }
}

/// The same with the operator's certificate in place of the daemon's own.
async fn with_own(
    server: &ServerConfig,
    identity: &Identity,
    certificate: &Path,
    key: &Path,
) -> Result<Arc<ServerConfig>, DaemonError> {
    let mut server = server.clone();
    server.cert_resolver = identity.own(certificate, key).await?;
    Ok(Arc::new(server))
}

impl Door for TlsListener {
    type Arrival = (TcpStream, Peer);
    type Stream = TlsStream<TcpStream>;

    async fn next(&self) -> io::Result<Self::Arrival> {
        self.listener.next().await
    }

    fn origin(&self, (_, peer): &Self::Arrival, proxies: &[IpAddr]) -> Origin {
        tcp_origin(peer, proxies)
    }

    async fn enter(&self, (stream, peer): Self::Arrival) -> io::Result<(Self::Stream, Peer)> {
        let Peer::Tcp { local, remote, .. } = peer else { return Err(io::ErrorKind::Unsupported.into()) };
        if !plain::speaks_tls(&stream).await? {
            plain::refuse(stream).await?;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the client does not speak TLS"));
        }
        let stream = self.acceptor.accept(stream).await?;
        let shown = stream.get_ref().1.peer_certificates();
        let chain: Vec<_> = shown.unwrap_or_default().iter().map(|der| der.clone().into_owned()).collect();
        let tls = if chain.is_empty() {
            Tls::Anonymous
        } else {
            let device = Device::new(Arc::clone(&self.authority), chain);
            Tls::Device(Arc::new(device.map_err(io::Error::other)?))
        };
        Ok((stream, Peer::Tcp { local, remote, tls, public: None }))
    }
}
