//! Many strangers who never show a credential: each connects, says one thing, and comes back some time after it was turned away.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::Failure;
use crate::daemon::{Daemon, Security};
use crate::owner::Listener;

/// Strangers at a time.
pub(crate) const STRANGERS: usize = 2_000;
/// When a stranger comes back that was turned away.
const AGAIN: Duration = Duration::from_secs(5);
/// Between two that come for the first time, so that they come within a second.
const APART: Duration = Duration::from_micros(500);
/// How long all of them take to come, with some room.
const COMING: Duration = Duration::from_secs(3);
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

/// What strangers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
    WebSocket,
    Grpc,
    Quic,
    Unix,
    Tls,
}

impl Protocol {
    pub(crate) const ALL: [Self; 7] =
        [Self::Http1, Self::Http2, Self::WebSocket, Self::Grpc, Self::Quic, Self::Unix, Self::Tls];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::WebSocket => "websocket",
            Self::Grpc => "grpc",
            Self::Quic => "quic",
            Self::Unix => "unix",
            Self::Tls => "tls",
        }
    }

    /// What HTTP has to be spoken over for it.
    pub(crate) const fn security(self) -> Security {
        match self {
            Self::Tls => Security::Tls,
            Self::Http1 | Self::Http2 | Self::WebSocket | Self::Grpc | Self::Quic | Self::Unix => Security::Plain,
        }
    }

    /// The listener that they crowd.
    pub(crate) const fn listener(self) -> Listener {
        match self {
            Self::Http1 | Self::Http2 | Self::WebSocket => Listener::Http,
            Self::Grpc => Listener::Grpc,
            Self::Quic => Listener::Quic,
            Self::Unix => Listener::Unix,
            Self::Tls => Listener::Tls,
        }
    }

    /// What one of them says, over a stream.
    fn greeting(self, host: SocketAddr) -> Vec<u8> {
        match self {
            Self::Http1 | Self::Tls => format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes(),
            Self::Http2 | Self::Grpc => HTTP2_PREFACE.to_vec(),
            Self::WebSocket => format!(
                "GET /acp/v1/ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            .into_bytes(),
            // The kernel says who is there, so only a request that never ends is like a stranger's.
            Self::Unix => b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Unfinished: ".to_vec(),
            Self::Quic => Vec::new(),
        }
    }
}

/// The strangers, gone when dropped.
pub(crate) struct Crowd {
    _strangers: JoinSet<()>,
}

impl Crowd {
    /// Lets them come, and waits until they have.
    pub(crate) async fn gather(protocol: Protocol, daemon: &Daemon) -> Result<Self, Failure> {
        allow_many_files()?;
        let mut strangers = JoinSet::new();
        let path = match protocol {
            Protocol::Quic => Path::Quic(HalfQuic::new(daemon.quic()?)?),
            Protocol::Unix => Path::Unix(daemon.state().join("palyrad.sock")),
            Protocol::Grpc => Path::Tcp(daemon.grpc),
            Protocol::Tls => Path::Tls(daemon.http, connector(daemon)?),
            Protocol::Http1 | Protocol::Http2 | Protocol::WebSocket => Path::Tcp(daemon.http),
        };
        let greeting: Arc<[u8]> = protocol.greeting(daemon.http).into();
        for n in 0..STRANGERS {
            let (path, greeting) = (path.clone(), Arc::clone(&greeting));
            strangers.spawn(async move {
                tokio::time::sleep(APART * u32::try_from(n).unwrap_or_default()).await;
                loop {
                    path.visit(&greeting).await;
                    tokio::time::sleep(AGAIN).await;
                }
            });
        }
        tokio::time::sleep(COMING).await;
        Ok(Self { _strangers: strangers })
    }
}

/// How they come.
#[derive(Clone)]
enum Path {
    Tcp(SocketAddr),
    Unix(PathBuf),
    Tls(SocketAddr, TlsConnector),
    Quic(Arc<HalfQuic>),
}

impl Path {
    /// Until the stranger is turned away.
    async fn visit(&self, greeting: &[u8]) {
        match self {
            Self::Tcp(address) => {
                if let Ok(stream) = TcpStream::connect(address).await {
                    stay(stream, greeting).await;
                }
            }
            Self::Unix(path) => {
                if let Ok(stream) = UnixStream::connect(path).await {
                    stay(stream, greeting).await;
                }
            }
            Self::Tls(address, connector) => {
                let Ok(stream) = TcpStream::connect(address).await else { return };
                if let Ok(stream) = connector.connect(ServerName::from(address.ip()), stream).await {
                    stay(stream, greeting).await;
                }
            }
            Self::Quic(half) => half.visit().await,
        }
    }
}

async fn stay(mut stream: impl AsyncRead + AsyncWrite + Unpin, greeting: &[u8]) {
    let mut buffer = [0; 1024];
    if stream.write_all(greeting).await.is_ok() {
        while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    }
}

/// TLS as a browser speaks it that knows the daemon's authority.
fn connector(daemon: &Daemon) -> Result<TlsConnector, Failure> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&std::fs::read(daemon.authority())?) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(tls)))
}

/// QUIC whose handshakes begin and never end: what the daemon answers reaches nobody.
struct HalfQuic {
    endpoint: quinn::Endpoint,
    config: quinn::ClientConfig,
    relay: SocketAddr,
}

impl HalfQuic {
    fn new(daemon: SocketAddr) -> Result<Arc<Self>, Failure> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (inside, outside) = (UdpSocket::bind(any)?, UdpSocket::bind(any)?);
        outside.connect(daemon)?;
        let relay = inside.local_addr()?;
        // Ends with the process: it waits for packets that nobody sends any more.
        std::thread::spawn(move || {
            let mut packet = vec![0; 64 * 1024];
            while let Ok(length) = inside.recv(&mut packet) {
                let _ = outside.send(packet.get(..length).unwrap_or_default());
            }
        });
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        tls.alpn_protocols = vec![palyra_client::quic::ALPN.to_vec()];
        let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        Ok(Arc::new(Self { endpoint: quinn::Endpoint::client(any)?, config, relay }))
    }

    async fn visit(&self) {
        if let Ok(connecting) = self.endpoint.connect_with(self.config.clone(), self.relay, "localhost") {
            let _ = connecting.await;
        }
    }
}

/// The strangers need more files than a shell usually allows.
fn allow_many_files() -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(())
}
