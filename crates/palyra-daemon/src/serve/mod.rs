//! Accepting connections and serving HTTP/1.1 and HTTP/2 on them, until told to close.
//!
//! Every connection is a task of one tracker: shutting down waits for the answers that are under way and for nothing else.

mod body;
mod connections;
mod io;
mod share;

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use palyra_telemetry::{Metrics, Transport};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use self::body::AnswerBody;
use self::io::ConnectionIo;
use crate::auth::{Peer, Tls};

pub(crate) use self::connections::{Connection, ConnectionLimits, ConnectionRef, Connections, Crowded, Origin, Unread};
pub(crate) use self::share::{Hold, Share};

/// How long a connection of HTTP/2 may be silent before it is asked whether it is still there, and how long it may take to say so.
const PING_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take to shake hands before its first request.
const ENTER_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest head of a request, all headers together.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Requests under way on one connection of HTTP/2.
const MAX_STREAMS: u32 = 128;
/// Streams that a client may reset before it is taken for an attacker.
const MAX_RESETS: usize = 32;
/// What is kept of the answer on a stream of HTTP/2 that the client has not taken, before more of it is asked for.
const SEND_BUFFER: usize = 64 * 1024;
/// How long an idle connection may take to close once it was asked to.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after the system refused to accept, typically because file handles ran out; without it the loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where connections come in.
pub(crate) trait Door: Send + Sync + 'static {
    /// A connection that was accepted and about which nothing is known yet.
    type Arrival: Send + 'static;
    /// What is read from and written to.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection. Cancel-safe, and never waits for what a client does after it connected.
    fn next(&self) -> impl Future<Output = std::io::Result<Self::Arrival>> + Send;

    /// Where it comes from.
    fn origin(&self, arrival: &Self::Arrival, proxies: &[IpAddr]) -> Origin;

    /// Does what comes before the first request, and learns who is at the other end.
    fn enter(&self, arrival: Self::Arrival) -> impl Future<Output = std::io::Result<(Self::Stream, Peer)>> + Send;
}

impl Door for UnixListener {
    type Arrival = UnixStream;
    type Stream = UnixStream;

    async fn next(&self) -> std::io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }

    fn origin(&self, stream: &UnixStream, _: &[IpAddr]) -> Origin {
        let own = rustix::process::geteuid().as_raw();
        let trusted = stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0);
        if trusted { Origin::Trusted } else { Origin::Shared }
    }

    async fn enter(&self, stream: UnixStream) -> std::io::Result<(UnixStream, Peer)> {
        let uid = stream.peer_cred()?.uid();
        Ok((stream, Peer::Unix { uid }))
    }
}

impl Door for TcpListener {
    type Arrival = (TcpStream, Peer);
    type Stream = TcpStream;

    async fn next(&self) -> std::io::Result<(TcpStream, Peer)> {
        let (stream, remote) = self.accept().await?;
        // Answers are written whole; waiting to fill a segment only adds latency. Where the system refuses, it still works.
        let _ = stream.set_nodelay(true);
        let local = stream.local_addr()?;
        Ok((stream, Peer::Tcp { local, remote, tls: Tls::Plain, public: None }))
    }

    fn origin(&self, (_, peer): &(TcpStream, Peer), proxies: &[IpAddr]) -> Origin {
        tcp_origin(peer, proxies)
    }

    async fn enter(&self, arrival: (TcpStream, Peer)) -> std::io::Result<(TcpStream, Peer)> {
        Ok(arrival)
    }
}

/// Where a connection over TCP comes from.
pub(crate) fn tcp_origin(peer: &Peer, proxies: &[IpAddr]) -> Origin {
    match peer {
        Peer::Tcp { remote, .. } => Origin::of_address(remote.ip(), proxies),
        Peer::Unix { .. } => Origin::Shared,
    }
}

/// An open connection and who is at its other end: the same for all of its requests.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) peer: Peer,
    pub(crate) connection: Connection,
}

impl Accepted {
    /// Lets handlers find out where a request comes from.
    pub(crate) fn note_on(&self, request: &mut http::Request<Body>) {
        request.extensions_mut().insert(self.peer.clone());
        request.extensions_mut().insert(self.connection.clone());
    }
}

/// What answers requests.
pub(crate) trait Answers: Clone + Send + Sync + 'static {
    /// Answers one request.
    fn answer(
        self,
        request: http::Request<Body>,
        accepted: Arc<Accepted>,
    ) -> impl Future<Output = http::Response<Body>> + Send;
}

impl Answers for Router {
    async fn answer(self, mut request: http::Request<Body>, accepted: Arc<Accepted>) -> http::Response<Body> {
        accepted.note_on(&mut request);
        match self.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Serves the same at any number of doors.
#[derive(Debug, Clone)]
pub(crate) struct Server<S> {
    service: S,
    closing: CancellationToken,
    limits: ConnectionLimits,
    /// Addresses of trusted proxies, which stand for many callers.
    proxies: Arc<[IpAddr]>,
    tasks: TaskTracker,
    metrics: Metrics,
    /// How connections over TCP count.
    transport: Transport,
}

impl<S: Answers> Server<S> {
    pub(crate) fn new(
        service: S,
        closing: CancellationToken,
        metrics: Metrics,
        transport: Transport,
        limits: ConnectionLimits,
        proxies: Arc<[IpAddr]>,
    ) -> Self {
        Self { service, closing, limits, proxies, tasks: TaskTracker::new(), metrics, transport }
    }

    /// Serves a listener from now on, with slots of its own.
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
        let connections = Connections::new(self.limits);
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.closing.cancelled() => return,
                accepted = async { connections.wait_for_closing().await; door.next().await } => accepted,
            };
            match accepted {
                Ok(arrival) => match connections.admit(door.origin(&arrival, &self.proxies)) {
                    Some(connection) => self.begin(Arc::clone(&door), arrival, connection),
                    None => tracing::warn!("a connection was refused: all slots are taken by authenticated callers"),
                },
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves one connection in a task of its own.
    fn begin<D: Door>(&self, door: Arc<D>, arrival: D::Arrival, connection: Connection) {
        let (answers, closing) = (self.service.clone(), self.closing.clone());
        let (metrics, transport) = (self.metrics.clone(), self.transport);
        self.tasks.spawn(async move {
            let entered = tokio::select! {
                () = closing.cancelled() => return,
                () = connection.evicted() => return,
                entered = tokio::time::timeout(ENTER_TIMEOUT, door.enter(arrival)) => entered,
            };
            match entered {
                Ok(Ok((stream, peer))) => {
                    let transport = if matches!(peer, Peer::Unix { .. }) { Transport::Unix } else { transport };
                    let _open = metrics.connection_opened(transport);
                    serve_connection(stream, peer, connection, answers, closing).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "a connection could not be established"),
                Err(_) => tracing::debug!("a client's TLS handshake timed out"),
            }
        });
    }
}

/// What may end a connection from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interruption {
    /// The daemon stops.
    Closing,
    /// Another connection needs the slot, or nobody reads what is sent here.
    Evicted,
    /// Nothing may have happened for too long.
    Idle,
}

/// A look at whether the connection is still in use.
fn idle_at(deadline: tokio::time::Instant) -> Pin<Box<dyn Future<Output = Interruption> + Send>> {
    Box::pin(tokio::time::sleep_until(deadline).map(|()| Interruption::Idle))
}

async fn serve_connection<S>(
    stream: S,
    peer: Peer,
    connection: Connection,
    answers: impl Answers,
    closing: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = {
        let accepted = Arc::new(Accepted { peer, connection: connection.clone() });
        service_fn(move |mut request: http::Request<Incoming>| {
            let connection = &accepted.connection;
            let guard = connection.request_by(request.version());
            if connection.is_crowded() {
                request.extensions_mut().insert(Crowded);
            }
            let (answers, accepted) = (answers.clone(), Arc::clone(&accepted));
            async move {
                let (head, body) = answers.answer(request.map(Body::new), accepted).await.into_parts();
                let guard = match head.status {
                    http::StatusCode::SWITCHING_PROTOCOLS => {
                        guard.upgraded();
                        None
                    }
                    _ => Some(guard),
                };
                Ok::<_, Infallible>(http::Response::from_parts(head, AnswerBody::new(body, guard)))
            }
        })
    };
    let builder = builder();
    let stream = TokioIo::new(ConnectionIo::new(stream, connection.clone()));
    let mut serving = pin!(builder.serve_connection_with_upgrades(stream, service));
    // A request wakes this task many times. Each of these is polled only when it was woken itself, since polling all of them costs as much as a small request.
    let mut interruptions = FuturesUnordered::<Pin<Box<dyn Future<Output = Interruption> + Send>>>::new();
    interruptions.push(Box::pin(closing.cancelled_owned().map(|()| Interruption::Closing)));
    interruptions.push(Box::pin(connection.evicted().map(|()| Interruption::Evicted)));
    interruptions.push(idle_at(connection.idle_deadline()));
    let ended = loop {
        let interruption = tokio::select! {
            biased;
            ended = serving.as_mut() => break ended,
            Some(interruption) = interruptions.next() => interruption,
        };
        match interruption {
            Interruption::Closing => {
                serving.as_mut().graceful_shutdown();
                break serving.await;
            }
            Interruption::Evicted => return,
            Interruption::Idle => {
                let deadline = connection.idle_deadline();
                if deadline > tokio::time::Instant::now() {
                    interruptions.push(idle_at(deadline));
                    continue;
                }
                serving.as_mut().graceful_shutdown();
                // A request may have arrived this very moment; it is answered.
                break loop {
                    match tokio::time::timeout(GOODBYE_TIMEOUT, serving.as_mut()).await {
                        Ok(ended) => break ended,
                        Err(_) if connection.is_busy() => {}
                        Err(_) => return,
                    }
                };
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
    // How long a head may take is part of how long a connection may be idle. The library's own time limit would set a timer for each request.
    builder.http1().header_read_timeout(None::<Duration>).max_buf_size(MAX_HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_BYTES as u32)
        .max_pending_accept_reset_streams(MAX_RESETS)
        .max_local_error_reset_streams(MAX_RESETS)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING_TIMEOUT)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}
