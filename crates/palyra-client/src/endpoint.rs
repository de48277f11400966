//! Where the daemon is, and how to open a connection to it.
//!
//! By default that is the Unix socket in the state root. Loopback HTTP is used only when the caller names an address: trying
//! it on its own would hand the local token to whatever process happens to own the port while the daemon is down. A daemon on another machine is reached over HTTPS.

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use palyra_common::SecretString;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::error::ClientError;
use crate::remote::{Remote, Trust};

/// Name of the daemon's socket in the state root.
pub const SOCKET_NAME: &str = "palyrad.sock";
/// Name of the file in the state root that holds the token for loopback HTTP.
pub const TOKEN_NAME: &str = "local.token";

/// Longest path that fits a socket address: `sun_path` has 108 bytes, one of them for the closing NUL.
const LONGEST_SOCKET_PATH: usize = 107;
/// A local daemon accepts at once or not at all, and one far away within a few round trips.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A way to reach a daemon.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// Its Unix socket; the kernel tells the daemon who calls.
    Unix {
        /// The directory that holds the socket.
        state_root: PathBuf,
    },
    /// Loopback HTTP.
    Loopback {
        /// The address, which is always a loopback one.
        address: SocketAddr,
        /// What is shown there.
        token: LoopbackToken,
    },
    /// HTTPS to any machine, with a token that the caller has.
    Remote(Box<Remote>),
}

/// What is shown over loopback HTTP.
#[derive(Debug, Clone)]
pub enum LoopbackToken {
    /// The owner's, out of this file of the state root; read anew for each connection, since a restart may change it.
    Owner(PathBuf),
    /// One that the caller has.
    Given(SecretString),
}

impl Endpoint {
    /// The Unix socket of a state root.
    #[must_use]
    pub fn unix(state_root: impl Into<PathBuf>) -> Self {
        Self::Unix { state_root: state_root.into() }
    }

    /// Loopback HTTP at `http://ADDRESS:PORT`, with the token of a state root. Any other host is refused: the token must
    /// not travel.
    ///
    /// # Errors
    /// When that is no such address.
    pub fn loopback(url: &str, state_root: &Path) -> Result<Self, ClientError> {
        let token = LoopbackToken::Owner(state_root.join(TOKEN_NAME));
        loopback_address(url).map(|address| Self::Loopback { address, token })
    }

    /// The same with a token of the caller's.
    ///
    /// # Errors
    /// When that is no such address.
    pub fn loopback_with(url: &str, token: SecretString) -> Result<Self, ClientError> {
        loopback_address(url).map(|address| Self::Loopback { address, token: LoopbackToken::Given(token) })
    }

    /// HTTPS at `https://HOST[:PORT]`, with a token of that daemon.
    ///
    /// # Errors
    /// When that is no such address, or what shall be trusted cannot be read.
    pub fn remote(url: &str, token: SecretString, trust: &Trust) -> Result<Self, ClientError> {
        Remote::new(url, token, trust).map(|remote| Self::Remote(Box::new(remote)))
    }

    /// What goes into the `Host` header. The daemon refuses any other name on TCP, so that no web page can reach it.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Unix { .. } => "palyrad".to_owned(),
            Self::Loopback { address, .. } => address.to_string(),
            Self::Remote(remote) => remote.host(),
        }
    }

    /// The endpoint for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Unix { state_root } => format!("`{}`", state_root.join(SOCKET_NAME).display()),
            Self::Loopback { address, .. } => format!("`http://{address}`"),
            Self::Remote(remote) => format!("`https://{}`", remote.host()),
        }
    }

    /// Opens a connection; the second part is the value of the `Authorization` header, where one is needed.
    pub(crate) async fn open(&self) -> Result<(TokioIo<Box<dyn Socket>>, Option<String>), ClientError> {
        match self {
            Self::Unix { state_root } => {
                let unreachable = |source| ClientError::Unreachable { endpoint: self.describe(), source };
                let path = SocketPath::in_state_root(state_root).map_err(unreachable)?;
                let stream = in_time(UnixStream::connect(path.as_path())).await.map_err(unreachable)?;
                self.check_owner(&stream)?;
                Ok((TokioIo::new(Box::new(stream)), None))
            }
            Self::Loopback { address, token } => {
                let token = match token {
                    LoopbackToken::Owner(file) => read_token(file)?,
                    LoopbackToken::Given(token) => token.expose().to_owned(),
                };
                let stream = in_time(TcpStream::connect(address))
                    .await
                    .map_err(|source| ClientError::Unreachable { endpoint: self.describe(), source })?;
                // A request is one small write; waiting to fill a segment only adds latency. If the system refuses, the
                // connection still works.
                let _ = stream.set_nodelay(true);
                Ok((TokioIo::new(Box::new(stream)), Some(format!("Bearer {token}"))))
            }
            Self::Remote(remote) => {
                let unreachable = |source| ClientError::Unreachable { endpoint: self.describe(), source };
                let stream = in_time(remote.connect()).await.map_err(unreachable)?;
                let _ = stream.set_nodelay(true);
                let stream = in_time(remote.shake_hands(stream))
                    .await
                    .map_err(|error| ClientError::Untrusted { endpoint: self.describe(), reason: error.to_string() })?;
                Ok((TokioIo::new(Box::new(stream)), Some(remote.authorization())))
            }
        }
    }

    /// Prompts may hold private text, so they go only to a daemon of this user or of root.
    fn check_owner(&self, stream: &UnixStream) -> Result<(), ClientError> {
        let peer =
            stream.peer_cred().map_err(|source| ClientError::Unreachable { endpoint: self.describe(), source })?.uid();
        let own = rustix::process::geteuid().as_raw();
        if peer == own || peer == 0 || own == 0 {
            Ok(())
        } else {
            Err(ClientError::ForeignDaemon { endpoint: self.describe(), uid: peer })
        }
    }
}

/// The address of `http://ADDRESS:PORT` on this machine; plain HTTP goes nowhere else.
fn loopback_address(url: &str) -> Result<SocketAddr, ClientError> {
    let invalid = || ClientError::InvalidAddress { value: url.to_owned() };
    let authority = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
    let authority = authority.replace("localhost:", "127.0.0.1:");
    let address: SocketAddr = authority.parse().map_err(|_| invalid())?;
    if address.ip().is_loopback() { Ok(address) } else { Err(invalid()) }
}

/// A byte stream of either kind.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

async fn in_time<T>(connecting: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn read_token(path: &Path) -> Result<String, ClientError> {
    let unreadable = |source| ClientError::TokenUnreadable { path: path.to_owned(), source };
    let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(ClientError::TokenExposed { path: path.to_owned(), mode });
    }
    let token = fs::read_to_string(path).map_err(unreadable)?;
    let token = token.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidData, "it does not contain a token")));
    }
    Ok(token.to_owned())
}

/// The path of a daemon's socket in a form that fits a socket address.
///
/// A state root may lie deeper than the 108 bytes of `sun_path` allow; then the path leads through an open handle of the
/// directory. Keep the value alive until the socket is connected or bound.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// Held open because `path` names it by number.
    _directory: Option<File>,
}

impl SocketPath {
    /// The socket of a state root, for connecting and for binding alike.
    pub fn in_state_root(state_root: &Path) -> io::Result<Self> {
        let path = state_root.join(SOCKET_NAME);
        if path.as_os_str().as_bytes().len() <= LONGEST_SOCKET_PATH {
            return Ok(Self { path, _directory: None });
        }
        let directory = File::open(state_root)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET_NAME}", directory.as_raw_fd()));
        Ok(Self { path, _directory: Some(directory) })
    }

    /// The path to hand to the system.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_taken() {
        let root = Path::new("/state");
        for good in ["http://127.0.0.1:7142", "127.0.0.1:7142", "http://localhost:7142/", "http://[::1]:7142"] {
            assert!(Endpoint::loopback(good, root).is_ok(), "{good}");
        }
        for bad in
            ["", "http://127.0.0.1", "https://127.0.0.1:7142", "http://192.168.0.7:7142", "http://example.org:80"]
        {
            assert!(matches!(Endpoint::loopback(bad, root), Err(ClientError::InvalidAddress { .. })), "{bad}");
        }
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(TOKEN_NAME);
        fs::write(&path, "abc123\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(read_token(&path), Err(ClientError::TokenExposed { mode: 0o640, .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_token(&path).unwrap(), "abc123");
        fs::write(&path, "two words\n").unwrap();
        assert!(matches!(read_token(&path), Err(ClientError::TokenUnreadable { .. })));
    }
}
