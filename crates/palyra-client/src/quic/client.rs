//! The client: one endpoint, one connection that is made again when it is gone, one stream per command.
//!
//! Only connecting is repeated by itself. A command that was under way when the connection broke is not sent again, because it may have been carried out;
//! with an idempotency key the caller may do so.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::{AcpCommandEnvelope, AcpCommandResultEnvelope, RequestId, RunId};
use palyra_identity::{ClientCredentials, TlsVersions};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, IdleTimeout, TransportConfig, VarInt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;

use super::exchange::{Exchange, QuicDocuments, lost};
use super::tape::{QuicTape, QuicTapeSource};
use super::{ALPN, CloseCode, LOCAL_IDENTITY, QUIC_ADDRESS_NAME};
use crate::command::{Command, StreamCommand};
use crate::cursor::Follow;
use crate::error::ClientError;
use crate::tape::Tape;
use crate::transport::one_line;

/// A daemon that is there answers a handshake at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the other side may be silent; keep-alives make sure that it is not by accident.
const IDLE: Duration = Duration::from_secs(20);
/// Also how long a daemon that was killed and came back goes unnoticed at most.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// How much of one stream arrives before it is read. A reader that stops reading stops the daemon's writing after so much.
const STREAM_WINDOW: u32 = 256 * 1024;

/// A handle on a daemon over QUIC. Cheap to clone; the clones share one connection.
#[derive(Debug, Clone)]
pub struct QuicClient {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    endpoint: Endpoint,
    config: ClientConfig,
    address: SocketAddr,
    server_name: String,
    connection: Mutex<Option<Connection>>,
}

impl QuicClient {
    /// Connects to a daemon, which must show a certificate for `server_name` by the authority of these credentials.
    ///
    /// # Errors
    /// When nobody answers there, or not somebody whom these credentials trust. Whether the daemon accepts the credentials shows with the first command.
    pub async fn connect(
        address: SocketAddr,
        server_name: &str,
        credentials: &ClientCredentials,
    ) -> Result<Self, ClientError> {
        let tls = credentials.client_config(&[ALPN], TlsVersions::Tls13Only)?;
        let refused = |reason: String| ClientError::CertificateRefused { endpoint: described(address), reason };
        let crypto = QuicClientConfig::try_from(tls).map_err(|error| refused(error.to_string()))?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport()));
        let endpoint = Endpoint::client(any_port(address))
            .map_err(|source| ClientError::Unreachable { endpoint: described(address), source })?;
        let server_name = server_name.to_owned();
        let client =
            Self { shared: Arc::new(Shared { endpoint, config, address, server_name, connection: Mutex::new(None) }) };
        client.connection().await?;
        Ok(client)
    }

    /// Connects to the daemon that serves a state root of this machine, as its owner.
    ///
    /// # Errors
    /// When the daemon serves no QUIC, or its files cannot be read.
    pub async fn connect_local(state_root: &Path) -> Result<Self, ClientError> {
        let file = state_root.join(QUIC_ADDRESS_NAME);
        let unreachable = |source| ClientError::Unreachable { endpoint: format!("`{}`", file.display()), source };
        let text = std::fs::read_to_string(&file).map_err(unreachable)?;
        let address = text.trim().parse().map_err(|_| ClientError::InvalidAddress { value: text.trim().to_owned() })?;
        let directory = state_root.join(LOCAL_IDENTITY);
        let Some(credentials) = ClientCredentials::read(&directory)? else {
            return Err(unreachable(io::Error::new(
                io::ErrorKind::NotFound,
                "the daemon has issued no certificate yet",
            )));
        };
        Self::connect(address, "localhost", &credentials).await
    }

    /// Carries out one command.
    ///
    /// # Errors
    /// When the daemon refuses it or the connection breaks; then it may have been carried out all the same.
    pub async fn command(&self, command: &Command) -> Result<Value, ClientError> {
        let envelope = envelope(command.name(), command.to_value())?;
        let answer = self.envelope(&envelope).await?;
        answer.into_outcome().map_err(|error| ClientError::Refused(Box::new(one_line(error))))
    }

    /// Carries out one command whose result has a known type.
    ///
    /// # Errors
    /// As [`QuicClient::command`], and when the result is not of that type.
    pub async fn ask<T: DeserializeOwned>(&self, command: &Command) -> Result<T, ClientError> {
        let value = self.command(command).await?;
        serde_json::from_value(value).map_err(|error| malformed(&error))
    }

    /// Carries out one envelope, with its key and expected version; a refusal is an answer too.
    ///
    /// # Errors
    /// When the connection breaks or the answer makes no sense.
    pub async fn envelope(&self, envelope: &AcpCommandEnvelope) -> Result<AcpCommandResultEnvelope, ClientError> {
        Exchange::open(&self.connection().await?, envelope).await?.result().await
    }

    /// Opens the stream of one command.
    ///
    /// # Errors
    /// When the connection breaks. A refusal comes with the first document.
    pub async fn stream(&self, command: &StreamCommand) -> Result<QuicDocuments, ClientError> {
        let envelope = envelope(command.name(), command.to_value())?;
        Ok(QuicDocuments::new(Exchange::open(&self.connection().await?, &envelope).await?))
    }

    /// A run's events from a position on; resumes over broken connections.
    #[must_use]
    pub fn tape(&self, id: RunId, from_seq: u64, follow: Follow) -> QuicTape {
        Tape::new(QuicTapeSource::new(self.clone()), id, from_seq, follow)
    }

    /// Goes on from another local address, as a machine does that changes networks. Open streams survive it.
    ///
    /// # Errors
    /// When the system gives no other socket; the old one stays in use.
    pub fn rebind(&self) -> io::Result<SocketAddr> {
        let socket = UdpSocket::bind(any_port(self.shared.address))?;
        let address = socket.local_addr()?;
        self.shared.endpoint.rebind(socket)?;
        Ok(address)
    }

    /// Says goodbye and waits until the daemon has heard it.
    pub async fn close(&self) {
        self.shared.endpoint.close(VarInt::from_u32(CloseCode::Done.number()), b"done");
        self.shared.endpoint.wait_idle().await;
    }

    /// The connection that is open, or a new one.
    async fn connection(&self) -> Result<Connection, ClientError> {
        let Shared { endpoint, config, address, server_name, connection } = &*self.shared;
        let mut kept = connection.lock().await;
        if let Some(open) = kept.as_ref().filter(|connection| connection.close_reason().is_none()) {
            return Ok(open.clone());
        }
        let unreachable = |source| ClientError::Unreachable { endpoint: described(*address), source };
        let connecting = endpoint
            .connect_with(config.clone(), *address, server_name)
            .map_err(|error| unreachable(io::Error::other(error)))?;
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| unreachable(io::ErrorKind::TimedOut.into()))?
            .map_err(|error| match lost("connecting", *address, error) {
                ClientError::Disconnected { source, .. } => unreachable(io::Error::other(source)),
                other => other,
            })?;
        *kept = Some(opened.clone());
        Ok(opened)
    }
}

fn envelope(
    name: palyra_common::AcpCommand,
    params: serde_json::Result<Value>,
) -> Result<AcpCommandEnvelope, ClientError> {
    Ok(AcpCommandEnvelope {
        request_id: RequestId::generate(),
        command: name,
        params: params.map_err(|error| malformed(&error))?,
        idempotency_key: None,
        expected_version: None,
    })
}

fn malformed(error: &serde_json::Error) -> ClientError {
    ClientError::Malformed { doing: "sending a command", message: error.to_string() }
}

pub(super) fn described(address: SocketAddr) -> String {
    format!("`quic://{address}`")
}

/// Any port of any interface that reaches the address.
fn any_port(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
        .keep_alive_interval(Some(KEEP_ALIVE))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        // The daemon opens no streams and sends no datagrams.
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None);
    transport
}
