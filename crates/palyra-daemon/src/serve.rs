//! Accepting connections and serving HTTP/1.1 and HTTP/2 on them, until told to close.
//!
//! Every connection is a task of one tracker: shutting down waits for the answers that are under way and for nothing else.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use palyra_telemetry::{Metrics, Transport};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt as _};

use crate::auth::{Peer, Tls};

/// Connections that are served together; more wait in the kernel's queue. A runaway client cannot take all file handles.
const MAX_CONNECTIONS: usize = 1024;
/// How long a client may take to send the head of a request, and how long an idle connection is kept.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take to shake hands before its first request.
const ENTER_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest head of a request, all headers together.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Requests under way on one connection of HTTP/2.
const MAX_STREAMS: u32 = 128;
/// Streams that a client may reset before it is taken for an attacker.
const MAX_RESETS: usize = 32;
/// Pause after the system refused to accept, typically because file handles ran out; without it the loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where connections come in.
pub(crate) trait Door: Send + Sync + 'static {
    /// A connection that was accepted and about which nothing is known yet.
    type Arrival: Send + 'static;
    /// What is read from and written to.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection. Cancel-safe, and never waits for what a client does after it connected.
    fn next(&self) -> impl Future<Output = io::Result<Self::Arrival>> + Send;

    /// Does what comes before the first request, and learns who is at the other end.
    fn enter(&self, arrival: Self::Arrival) -> impl Future<Output = io::Result<(Self::Stream, Peer)>> + Send;
}

impl Door for UnixListener {
    type Arrival = UnixStream;
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }

    async fn enter(&self, stream: UnixStream) -> io::Result<(UnixStream, Peer)> {
        let uid = stream.peer_cred()?.uid();
        Ok((stream, Peer::Unix { uid }))
    }
}

impl Door for TcpListener {
    type Arrival = (TcpStream, Peer);
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Peer)> {
        let (stream, remote) = self.accept().await?;
        // Answers are written whole; waiting to fill a segment only adds latency. Where the system refuses, it still works.
        let _ = stream.set_nodelay(true);
        let local = stream.local_addr()?;
        Ok((stream, Peer::Tcp { local, remote, tls: Tls::Plain }))
    }

    async fn enter(&self, arrival: (TcpStream, Peer)) -> io::Result<(TcpStream, Peer)> {
        Ok(arrival)
    }
}

/// What answers requests.
pub(crate) trait Answers:
    Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Answers for S where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Serves the same at any number of doors.
#[derive(Debug, Clone)]
pub(crate) struct Server<S> {
    service: S,
    closing: CancellationToken,
    slots: Arc<Semaphore>,
    tasks: TaskTracker,
    metrics: Metrics,
    /// How connections over TCP count.
    transport: Transport,
}

impl<S: Answers> Server<S> {
    pub(crate) fn new(service: S, closing: CancellationToken, metrics: Metrics, transport: Transport) -> Self {
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Self { service, closing, slots, tasks: TaskTracker::new(), metrics, transport }
    }

    /// Serves a door from now on.
    pub(crate) fn serve(&self, door: impl Door) {
        let server = self.clone();
        self.tasks.spawn(async move { server.accept(door).await });
    }

    /// Lets other work of transports be waited for together with the answers; it must end by itself when the daemon closes.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Waits until every answer that was under way is written, at most so long.
    pub(crate) async fn finish(&self, grace: Duration) {
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            tracing::warn!(open = self.tasks.len(), "some clients did not read their answers in time");
        }
    }

    async fn accept<D: Door>(&self, door: D) {
        let door = Arc::new(door);
        loop {
            let slot = tokio::select! {
                biased;
                () = self.closing.cancelled() => return,
                slot = Arc::clone(&self.slots).acquire_owned() => slot,
            };
            let Ok(slot) = slot else { return };
            let accepted = tokio::select! {
                biased;
                () = self.closing.cancelled() => return,
                accepted = door.next() => accepted,
            };
            match accepted {
                Ok(arrival) => {
                    let (door, answers, closing) = (Arc::clone(&door), self.service.clone(), self.closing.clone());
                    let (metrics, transport) = (self.metrics.clone(), self.transport);
                    self.tasks.spawn(async move {
                        let entered = tokio::select! {
                            () = closing.cancelled() => return,
                            entered = tokio::time::timeout(ENTER_TIMEOUT, door.enter(arrival)) => entered,
                        };
                        match entered {
                            Ok(Ok((stream, peer))) => {
                                let transport =
                                    if matches!(peer, Peer::Unix { .. }) { Transport::Unix } else { transport };
                                let _open = metrics.connection_opened(transport);
                                serve_connection(stream, peer, answers, closing).await;
                            }
                            Ok(Err(error)) => tracing::debug!(%error, "a connection could not be established"),
                            Err(_) => tracing::debug!("a client's TLS handshake timed out"),
                        }
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn serve_connection<S>(stream: S, peer: Peer, answers: impl Answers, closing: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let heard = Arc::new(AtomicBool::new(false));
    let service = {
        let heard = Arc::clone(&heard);
        service_fn(move |mut request: http::Request<Incoming>| {
            heard.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(peer.clone());
            let answers = answers.clone();
            async move { Ok::<_, Infallible>(answer(answers, request.map(Body::new)).await) }
        })
    };
    let builder = builder();
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    // The time for a head begins when the version is known; a client that says too little for that is waited for here.
    let mut silence = pin!(tokio::time::sleep(HEAD_TIMEOUT));
    let mut listening = true;
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                break connection.await;
            }
            () = silence.as_mut(), if listening => {
                listening = false;
                if !heard.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    };
    if let Err(error) = ended {
        // A client that went away is everyday life.
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Both versions of HTTP, with bounds on everything that a client could make grow.
fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_BYTES as u32)
        .max_pending_accept_reset_streams(MAX_RESETS)
        .max_local_error_reset_streams(MAX_RESETS)
        .keep_alive_interval(HEAD_TIMEOUT)
        .keep_alive_timeout(HEAD_TIMEOUT);
    builder
}

async fn answer(service: impl Answers, request: http::Request<Body>) -> http::Response<Body> {
    match service.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
