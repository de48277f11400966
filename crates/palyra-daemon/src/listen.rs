//! The doors: the Unix socket, which must open, and HTTP, gRPC and QUIC, which may fail to.
//!
//! A port that somebody else has is no reason not to work: everything local goes through the socket. Health says so. TLS that was asked for and cannot be
//! spoken is another matter: then the daemon does not start, rather than start with less than it was told. That an address which other machines can reach needs
//! more than its own line in the file is checked with the configuration, the same for all doors. A door that the service manager opened is taken over
//! under the names `unix`, `http`, `grpc` and `quic`; it is held to the same rules as one that the daemon opens itself.

use std::fs::{self, Permissions};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;

use palyra_client::quic::QUIC_ADDRESS_NAME;
use palyra_client::{SOCKET_NAME, SocketPath};
use palyra_common::config::{Config, QuicConfig};
use palyra_common::{ComponentHealth, HealthStatus};
use palyra_telemetry::{InheritedSockets, TelemetryError};
use tokio::net::{TcpListener, UnixListener};

use crate::error::DaemonError;
use crate::quic::QuicHealth;
use crate::state::{GRPC_ADDRESS, HTTP_ADDRESS, StateRoot};
use crate::tls::{Identity, TlsListener, TlsSetup};

/// Open doors, not yet served.
#[derive(Debug)]
pub(crate) struct Doors {
    pub(crate) unix: UnixListener,
    pub(crate) http: Option<Tcp>,
    /// What health says about HTTP.
    pub(crate) http_health: ComponentHealth,
    pub(crate) grpc: Option<Tcp>,
    /// What health says about gRPC.
    pub(crate) grpc_health: ComponentHealth,
    pub(crate) quic: Option<UdpSocket>,
    /// What health says about QUIC.
    pub(crate) quic_health: QuicHealth,
}

/// A door over TCP.
#[derive(Debug)]
pub(crate) enum Tcp {
    /// Without TLS, which is for this machine only.
    Plain(TcpListener),
    /// With TLS.
    Tls(TlsListener),
}

/// An address that is listened at, if it is, and what health says about it.
#[derive(Debug)]
struct Opened {
    listener: Option<TcpListener>,
    health: ComponentHealth,
}

impl Opened {
    /// Speaks TLS there, if asked to.
    fn speaking(mut self, tls: Option<TlsSetup>) -> (Option<Tcp>, ComponentHealth) {
        if tls.is_some() {
            self.health.summary = self.health.summary.replacen("http://", "https://", 1);
        }
        let door = self.listener.map(|listener| match tls {
            Some(tls) => Tcp::Tls(tls.at(listener)),
            None => Tcp::Plain(listener),
        });
        (door, self.health)
    }
}

/// A door to open.
struct Wanted {
    /// What health calls it.
    component: &'static str,
    /// Its section's key for the address.
    bind_key: &'static str,
    /// The key that switches it off.
    enabled_key: &'static str,
    /// The file that tells others its address.
    note: &'static str,
    bind: Option<SocketAddr>,
}

impl Doors {
    /// Opens what the configuration asks for.
    pub(crate) async fn open(
        root: &StateRoot,
        config: &Config,
        identity: &Identity,
        inherited: &mut InheritedSockets,
    ) -> Result<Self, DaemonError> {
        let unix = match inherited.unix("unix") {
            Some(listener) => take_unix(root, listener)?,
            None => open_unix(root)?,
        };
        let http = Wanted {
            component: "http",
            bind_key: "daemon.http_bind",
            enabled_key: "daemon.http_enabled",
            note: HTTP_ADDRESS,
            bind: config.daemon.http_enabled.then_some(config.daemon.http_bind),
        };
        let grpc = Wanted {
            component: "grpc",
            bind_key: "grpc.bind",
            enabled_key: "grpc.enabled",
            note: GRPC_ADDRESS,
            bind: config.grpc.enabled.then_some(config.grpc.bind),
        };
        // Made before anything is bound: a daemon that cannot speak TLS where it shall does not start.
        let http_tls = match config.daemon.http_enabled && config.http.tls {
            true => Some(TlsSetup::new(identity, &config.http).await?),
            false => None,
        };
        let grpc_tls = match config.grpc.enabled && config.grpc.tls {
            true => Some(TlsSetup::new(identity, &config.http).await?),
            false => None,
        };
        let (http, http_health) = open_tcp(root, http, inherited).await?.speaking(http_tls);
        let (grpc, grpc_health) = open_tcp(root, grpc, inherited).await?.speaking(grpc_tls);
        let (quic, quic_health) = open_quic(root, &config.quic, inherited.udp("quic"))?;
        Ok(Self { unix, http, http_health, grpc, grpc_health, quic, quic_health: QuicHealth::new(quic_health) })
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

/// A socket that stands elsewhere would be one that no client finds.
fn take_unix(root: &StateRoot, listener: std::os::unix::net::UnixListener) -> Result<UnixListener, DaemonError> {
    let expected = root.path().join(SOCKET_NAME);
    let address = listener.local_addr().map_err(DaemonError::system("inspect the inherited socket"))?;
    let stands_there = address.as_pathname().is_some_and(|path| {
        matches!((fs::canonicalize(path), fs::canonicalize(&expected)), (Ok(given), Ok(expected)) if given == expected)
    });
    if !stands_there {
        let reason = format!("`unix` must listen at `{}`, where clients expect it", expected.display());
        return Err(TelemetryError::InheritedSocketInvalid { reason }.into());
    }
    root.leave_socket();
    UnixListener::from_std(listener).map_err(DaemonError::system("use the inherited socket"))
}

/// Which addresses may be served does not depend on who opened them: one that other machines reach has to be the configured one, which was checked.
fn check_inherited(name: &str, address: SocketAddr, configured: SocketAddr) -> Result<(), DaemonError> {
    if address.ip().to_canonical().is_loopback() || address == configured {
        return Ok(());
    }
    let reason =
        format!("`{name}` listens at {address}, which other machines can reach and the configuration does not name");
    Err(TelemetryError::InheritedSocketInvalid { reason }.into())
}

fn take_tcp(
    name: &str,
    listener: std::net::TcpListener,
    configured: SocketAddr,
) -> Result<(TcpListener, SocketAddr), DaemonError> {
    let address = listener.local_addr().map_err(DaemonError::system("inspect the inherited socket"))?;
    check_inherited(name, address, configured)?;
    let listener = TcpListener::from_std(listener).map_err(DaemonError::system("use the inherited socket"))?;
    Ok((listener, address))
}

async fn open_tcp(root: &StateRoot, wanted: Wanted, inherited: &mut InheritedSockets) -> Result<Opened, DaemonError> {
    let health = |status, summary: String| ComponentHealth::new(wanted.component, status, summary);
    let Some(bind) = wanted.bind else {
        let summary = format!("switched off by `{}`", wanted.enabled_key);
        return Ok(Opened { listener: None, health: health(HealthStatus::Ok, summary) });
    };
    let taken =
        inherited.tcp(wanted.component).map(|listener| take_tcp(wanted.component, listener, bind)).transpose()?;
    let bound = async {
        if let Some(taken) = taken {
            return Ok(taken);
        }
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        Ok::<_, std::io::Error>((listener, address))
    };
    match bound.await {
        Ok((listener, address)) => {
            root.note_address(wanted.note, address)?;
            let health = health(HealthStatus::Ok, format!("http://{address}"));
            Ok(Opened { listener: Some(listener), health })
        }
        Err(error) => {
            tracing::warn!(interface = wanted.component, %bind, %error, "it is not served; use the Unix socket");
            let summary = format!("cannot listen at {bind}: {error}");
            let hint =
                format!("free the port, or set `{}` to another one (port 0 takes any), and restart", wanted.bind_key);
            Ok(Opened { listener: None, health: health(HealthStatus::Degraded, summary).hint(hint) })
        }
    }
}

fn open_quic(
    root: &StateRoot,
    config: &QuicConfig,
    inherited: Option<UdpSocket>,
) -> Result<(Option<UdpSocket>, ComponentHealth), DaemonError> {
    let health = |status, summary: String| ComponentHealth::new("quic", status, summary);
    if !config.enabled {
        return Ok((None, health(HealthStatus::Ok, "switched off by `quic.enabled`".to_owned())));
    }
    let bind = config.bind;
    if let Some(socket) = &inherited {
        let address = socket.local_addr().map_err(DaemonError::system("inspect the inherited socket"))?;
        check_inherited("quic", address, bind)?;
    }
    let bound = inherited.map_or_else(|| UdpSocket::bind(bind), Ok).and_then(|socket| {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok((socket, address))
    });
    match bound {
        Ok((socket, address)) => {
            root.note_address(QUIC_ADDRESS_NAME, address)?;
            Ok((Some(socket), health(HealthStatus::Ok, format!("quic://{address}"))))
        }
        Err(error) => {
            tracing::warn!(%bind, %error, "QUIC is not served; use the Unix socket");
            let summary = format!("cannot listen at {bind}: {error}");
            let hint = "free the port, set `quic.bind` to another one (port 0 takes any) or `quic.enabled = false`, and restart";
            Ok((None, health(HealthStatus::Degraded, summary).hint(hint)))
        }
    }
}
