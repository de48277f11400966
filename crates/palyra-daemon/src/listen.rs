//! The doors: the Unix socket, which must open, and loopback HTTP and gRPC, which may fail to.
//!
//! A port that somebody else has is no reason not to work: everything local goes through the socket. Health says so. A door that the service manager
//! opened is taken over under the names `unix`, `http` and `grpc`; it is held to the same rules as one that the daemon opens itself.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;

use palyra_client::{SOCKET_NAME, SocketPath};
use palyra_common::config::Config;
use palyra_common::{ComponentHealth, HealthStatus};
use palyra_telemetry::{InheritedSockets, TelemetryError};
use tokio::net::{TcpListener, UnixListener};

use crate::error::DaemonError;
use crate::state::{GRPC_ADDRESS, HTTP_ADDRESS, StateRoot};

/// Open doors, not yet served.
#[derive(Debug)]
pub(crate) struct Doors {
    pub(crate) unix: UnixListener,
    pub(crate) http: Opened,
    pub(crate) grpc: Opened,
}

/// A door over TCP, if it is open, and what health says about it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) listener: Option<TcpListener>,
    pub(crate) health: ComponentHealth,
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
        let http = open_tcp(root, http, inherited).await?;
        Ok(Self { unix, http, grpc: open_tcp(root, grpc, inherited).await? })
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
    let address = listener.local_addr().map_err(DaemonError::system("look at the inherited socket"))?;
    let stands_there = address.as_pathname().is_some_and(|path| {
        matches!((fs::canonicalize(path), fs::canonicalize(&expected)), (Ok(given), Ok(expected)) if given == expected)
    });
    if !stands_there {
        let reason = format!("`unix` has to listen at `{}`, where clients look for it", expected.display());
        return Err(TelemetryError::InheritedSocketInvalid { reason }.into());
    }
    root.leave_socket();
    UnixListener::from_std(listener).map_err(DaemonError::system("use the inherited socket"))
}

/// Which addresses may be served does not depend on who opened them: without TLS, none that other machines reach.
fn take_tcp(name: &str, listener: std::net::TcpListener) -> Result<(TcpListener, SocketAddr), DaemonError> {
    let address = listener.local_addr().map_err(DaemonError::system("look at the inherited socket"))?;
    if !address.ip().to_canonical().is_loopback() {
        let reason = format!("`{name}` listens at {address}, which other machines can reach");
        return Err(TelemetryError::InheritedSocketInvalid { reason }.into());
    }
    let listener = TcpListener::from_std(listener).map_err(DaemonError::system("use the inherited socket"))?;
    Ok((listener, address))
}

async fn open_tcp(root: &StateRoot, wanted: Wanted, inherited: &mut InheritedSockets) -> Result<Opened, DaemonError> {
    let health = |status, summary: String| ComponentHealth::new(wanted.component, status, summary);
    let Some(bind) = wanted.bind else {
        let summary = format!("switched off by `{}`", wanted.enabled_key);
        return Ok(Opened { listener: None, health: health(HealthStatus::Ok, summary) });
    };
    let taken = inherited.tcp(wanted.component).map(|listener| take_tcp(wanted.component, listener)).transpose()?;
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
            tracing::warn!(interface = wanted.component, %bind, %error, "it is not served; the Unix socket is");
            let summary = format!("cannot listen at {bind}: {error}");
            let hint =
                format!("free the port, or set `{}` to another one (port 0 takes any), and restart", wanted.bind_key);
            Ok(Opened { listener: None, health: health(HealthStatus::Degraded, summary).hint(hint) })
        }
    }
}
