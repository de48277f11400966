//! An authority with a clock that tests move, and handshakes in memory.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::{DeviceId, FixedClock, PrincipalRole, Timestamp};
use palyra_identity::{Authority, AuthorityOptions, ClientCredentials, ClientRequest, PrincipalId};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use rustls_pki_types::CertificateDer;
use tempfile::TempDir;

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The clock of clients is the machine's, so the authority's stands there too until a test moves it.
pub(crate) fn real_now() -> Timestamp {
    palyra_common::Clock::now(&palyra_common::SystemClock)
}

pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) clock: FixedClock,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), clock: FixedClock::at(real_now()) }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("identity")
    }

    pub(crate) fn open_with(&self, options: AuthorityOptions) -> Result<Authority, palyra_identity::IdentityError> {
        Authority::open_or_create(&self.path(), options, Arc::new(self.clock.clone()))
    }

    pub(crate) fn open(&self) -> Authority {
        self.open_with(AuthorityOptions::default()).unwrap()
    }
}

pub(crate) fn owner() -> PrincipalId {
    PrincipalId::uid(1000)
}

pub(crate) fn request(life: Duration) -> ClientRequest {
    ClientRequest { device: DeviceId::generate(), principal: owner(), role: PrincipalRole::Operator, life }
}

pub(crate) fn client(authority: &Authority) -> ClientCredentials {
    authority.issue_client(&request(DAY)).unwrap()
}

/// What both sides came to.
#[derive(Debug)]
pub(crate) struct Shaken {
    pub(crate) peer: Vec<CertificateDer<'static>>,
    pub(crate) alpn: Option<Vec<u8>>,
    pub(crate) version: rustls::ProtocolVersion,
    pub(crate) kind: rustls::HandshakeKind,
}

/// A whole handshake to the given name, or the error of whichever side refused.
pub(crate) fn shake(
    server: &Arc<ServerConfig>,
    client: &Arc<ClientConfig>,
    name: &str,
) -> Result<Shaken, rustls::Error> {
    let name = name.to_owned().try_into().unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name)?;
    let mut server = ServerConnection::new(Arc::clone(server))?;
    // The server's last word about a client certificate comes after the client has finished, so both go on until nobody speaks.
    loop {
        let mut quiet = true;
        while client.wants_write() {
            quiet = false;
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            feed(&bytes, |part| server.read_tls(part));
            server.process_new_packets()?;
        }
        while server.wants_write() {
            quiet = false;
            let mut bytes = Vec::new();
            server.write_tls(&mut bytes).unwrap();
            feed(&bytes, |part| client.read_tls(part));
            client.process_new_packets()?;
        }
        if quiet {
            break;
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking(), "the handshake stands still");
    Ok(Shaken {
        peer: server.peer_certificates().unwrap_or_default().iter().cloned().map(CertificateDer::into_owned).collect(),
        alpn: server.alpn_protocol().map(<[u8]>::to_vec),
        version: server.protocol_version().unwrap(),
        kind: server.handshake_kind().unwrap(),
    })
}

fn feed(bytes: &[u8], mut read: impl FnMut(&mut dyn io::Read) -> io::Result<usize>) {
    let mut rest = bytes;
    while !rest.is_empty() {
        read(&mut rest).unwrap();
    }
}
