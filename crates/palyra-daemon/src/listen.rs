//! The doors: the Unix socket, which must open, and loopback HTTP, which may fail to.
//!
//! A port that somebody else has is no reason not to work: everything local goes through the socket. Health says so.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use palyra_client::{SOCKET_NAME, SocketPath};
use palyra_common::config::DaemonConfig;
use palyra_common::{ComponentHealth, HealthStatus};
use tokio::net::{TcpListener, UnixListener};

use crate::error::DaemonError;
use crate::state::StateRoot;

/// Open doors, not yet served.
#[derive(Debug)]
pub(crate) struct Doors {
    pub(crate) unix: UnixListener,
    pub(crate) http: Option<TcpListener>,
    /// What health says about HTTP.
    pub(crate) http_health: ComponentHealth,
}

impl Doors {
    /// Opens what the configuration asks for.
    pub(crate) async fn open(root: &StateRoot, config: &DaemonConfig) -> Result<Self, DaemonError> {
        let unix = open_unix(root)?;
        let (http, http_health) = open_http(root, config).await?;
        Ok(Self { unix, http, http_health })
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
    config: &DaemonConfig,
) -> Result<(Option<TcpListener>, ComponentHealth), DaemonError> {
    let health = |status, summary: String| ComponentHealth::new("http", status, summary);
    if !config.http_enabled {
        return Ok((None, health(HealthStatus::Ok, "switched off by `daemon.http_enabled`".to_owned())));
    }
    let bind = config.http_bind;
    let bound = async {
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        Ok::<_, std::io::Error>((listener, address))
    };
    match bound.await {
        Ok((listener, address)) => {
            root.note_address(address)?;
            Ok((Some(listener), health(HealthStatus::Ok, format!("http://{address}"))))
        }
        Err(error) => {
            tracing::warn!(%bind, %error, "HTTP is not served; the Unix socket is");
            let summary = format!("cannot listen at {bind}: {error}");
            let hint = "free the port, or set `daemon.http_bind` to another one (port 0 takes any), and restart";
            Ok((None, health(HealthStatus::Degraded, summary).hint(hint)))
        }
    }
}
