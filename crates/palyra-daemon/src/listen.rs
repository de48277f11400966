//! The doors: the Unix socket, which must open, and HTTP and QUIC, which may fail to.
//!
//! A port that somebody else has is no reason not to work: everything local goes through the socket. Health says so. TLS that was asked for and cannot be
//! spoken is another matter: then the daemon does not start, rather than start with less than it was told. That an address which other machines can reach needs
//! more than its own line in the file is checked with the configuration, the same for all doors.

use std::fs::{self, Permissions};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;

use palyra_client::{SOCKET_NAME, SocketPath};
use palyra_common::config::{Config, QuicConfig};
use palyra_common::{ComponentHealth, HealthStatus};
use tokio::net::{TcpListener, UnixListener};

use crate::error::DaemonError;
use crate::quic::QuicHealth;
use crate::state::StateRoot;
use crate::tls::{Identity, TlsListener, TlsSetup};

/// Open doors, not yet served.
#[derive(Debug)]
pub(crate) struct Doors {
    pub(crate) unix: UnixListener,
    pub(crate) http: Option<Http>,
    /// What health says about HTTP.
    pub(crate) http_health: ComponentHealth,
    pub(crate) quic: Option<UdpSocket>,
    /// What health says about QUIC.
    pub(crate) quic_health: QuicHealth,
}

/// The door of HTTP.
#[derive(Debug)]
pub(crate) enum Http {
    /// Without TLS, which is for this machine only.
    Plain(TcpListener),
    /// With TLS.
    Tls(TlsListener),
}

impl Doors {
    /// Opens what the configuration asks for.
    pub(crate) async fn open(root: &StateRoot, config: &Config, identity: &Identity) -> Result<Self, DaemonError> {
        let unix = open_unix(root)?;
        let (http, http_health) = open_http(root, config, identity).await?;
        let (quic, quic_health) = open_quic(root, &config.quic)?;
        Ok(Self { unix, http, http_health, quic, quic_health: QuicHealth::new(quic_health) })
    }
}

fn open_unix(root: &StateRoot) -> Result<UnixListener, DaemonError> {
    let shown = root.path().join(SOCKET_NAME);
    // Whoever left it is dead, since this process holds the lock.
    root.forget(SOCKET_NAME)?;
    let socket = SocketPath::in_state_root(root.path()).map_err(DaemonError::file("listen at", &shown))?;
    let listener = UnixListener::bind(socket.as_path()).map_err(DaemonError::file("listen at", &shown))?;
    // Until this line the process's umask rules; whoever slips in is still asked for by the kernel's word on the peer.
    fs::set_permissions(socket.as_path(), Permissions::from_mode(0o600)).map_err(DaemonError::file("close", &shown))?;
    Ok(listener)
}

async fn open_http(
    root: &StateRoot,
    config: &Config,
    identity: &Identity,
) -> Result<(Option<Http>, ComponentHealth), DaemonError> {
    let health = |status, summary: String| ComponentHealth::new("http", status, summary);
    if !config.daemon.http_enabled {
        return Ok((None, health(HealthStatus::Ok, "switched off by `daemon.http_enabled`".to_owned())));
    }
    let tls = if config.http.tls { Some(TlsSetup::new(identity, &config.http).await?) } else { None };
    let bind = config.daemon.http_bind;
    let bound = async {
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        Ok::<_, std::io::Error>((listener, address))
    };
    match bound.await {
        Ok((listener, address)) => {
            root.note_address(address)?;
            let (door, scheme) = match tls {
                Some(tls) => (Http::Tls(tls.at(listener)), "https"),
                None => (Http::Plain(listener), "http"),
            };
            Ok((Some(door), health(HealthStatus::Ok, format!("{scheme}://{address}"))))
        }
        Err(error) => {
            tracing::warn!(%bind, %error, "HTTP is not served; the Unix socket is");
            let summary = format!("cannot listen at {bind}: {error}");
            let hint = "free the port, or set `daemon.http_bind` to another one (port 0 takes any), and restart";
            Ok((None, health(HealthStatus::Degraded, summary).hint(hint)))
        }
    }
}

fn open_quic(root: &StateRoot, config: &QuicConfig) -> Result<(Option<UdpSocket>, ComponentHealth), DaemonError> {
    let health = |status, summary: String| ComponentHealth::new("quic", status, summary);
    if !config.enabled {
        return Ok((None, health(HealthStatus::Ok, "switched off by `quic.enabled`".to_owned())));
    }
    let bind = config.bind;
    let bound = UdpSocket::bind(bind).and_then(|socket| {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok((socket, address))
    });
    match bound {
        Ok((socket, address)) => {
            root.note_quic_address(address)?;
            Ok((Some(socket), health(HealthStatus::Ok, format!("quic://{address}"))))
        }
        Err(error) => {
            tracing::warn!(%bind, %error, "QUIC is not served; the Unix socket is");
            let summary = format!("cannot listen at {bind}: {error}");
            let hint = "free the port, set `quic.bind` to another one (port 0 takes any) or `quic.enabled = false`, and restart";
            Ok((None, health(HealthStatus::Degraded, summary).hint(hint)))
        }
    }
}
