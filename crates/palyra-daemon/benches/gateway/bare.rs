//! The references: servers that do nothing, each a process of its own as the daemon is.

use std::io::BufRead as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;

use crate::Failure;

/// Which server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Server {
    /// axum with one route.
    Axum,
    /// tonic with the standard health service.
    Tonic,
}

impl Server {
    const fn argument(self) -> &'static str {
        match self {
            Self::Axum => "--bare-axum",
            Self::Tonic => "--bare-tonic",
        }
    }

    pub(crate) fn of_argument(argument: &str) -> Option<Self> {
        [Self::Axum, Self::Tonic].into_iter().find(|server| server.argument() == argument)
    }

    /// Starts the server beside this process.
    pub(crate) fn start(self) -> Result<Bare, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(self.argument())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        let read = std::io::BufReader::new(stdout).read_line(&mut line);
        // Owned before anything can fail: the process ends with it.
        let mut bare = Bare { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        read?;
        bare.address = line.trim().parse()?;
        Ok(bare)
    }

    /// Is the server, until it is killed. As many threads as the daemon takes.
    pub(crate) fn serve(self) -> Result<(), Failure> {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            println!("{}", listener.local_addr()?);
            match self {
                Self::Axum => {
                    let router = axum::Router::new().route("/healthz", axum::routing::get(|| async { "ok" }));
                    let listener = listener.tap_io(|stream| {
                        let _ = stream.set_nodelay(true);
                    });
                    axum::serve(listener, router).await?;
                }
                Self::Tonic => {
                    let (_reporter, service) = tonic_health::server::health_reporter();
                    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                    tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming).await?;
                }
            }
            Ok(())
        })
    }
}

/// A server beside this process; killed when dropped.
pub(crate) struct Bare {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Bare {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
