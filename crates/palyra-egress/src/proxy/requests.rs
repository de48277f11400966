//! Serving HTTP/1.1: requests with the whole address to the proxy, and requests inside a tunnel that is not passed on unseen.
//!
//! Every request is judged on its own, however many a connection carries. The answer is the host's, without its hop-by-hop headers; the proxy follows
//! no redirect and adds nothing.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, Method, Request, Response, Version};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::answer::{refuse, refuse_raw};
use super::door::{HEAD_LIMIT, authorised};
use super::guard::{Guard, ambiguous};
use super::service::Shared;
use crate::error::{EgressError, Refusal, RefusalReason};
use crate::host::Host;
use crate::log::Via;
use crate::outbound::{Answer, OutBody, Outgoing, exchange, strip_hop_by_hop};
use crate::target::{Scheme, Target, parse_authority};

/// Where requests come in.
#[derive(Debug, Clone)]
pub(super) enum Door {
    /// To the proxy itself: the first line carries the whole address.
    Proxy,
    /// Inside a tunnel: everything goes to its host.
    Inside(Arc<Inside>),
}

#[derive(Debug)]
pub(super) struct Inside {
    scheme: Scheme,
    host: Host,
    port: u16,
    via: Via,
}

impl Door {
    pub(super) fn inside(scheme: Scheme, host: Host, port: u16, via: Via) -> Self {
        Self::Inside(Arc::new(Inside { scheme, host, port, via }))
    }

    fn via(&self) -> Via {
        match self {
            Self::Proxy => Via::HttpProxy,
            Self::Inside(inside) => inside.via,
        }
    }
}

/// Serves the requests of one connection.
pub(super) async fn serve<S>(shared: Arc<Shared>, stream: S, door: Door)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let grant = shared.grant();
    let (guarded, reason) = Guard::new(Patient::new(stream, grant.limits.idle()), grant.limits.header_bytes);
    let service = service_fn(|request| {
        let (shared, door) = (Arc::clone(&shared), door.clone());
        Box::pin(async move { Ok::<_, std::convert::Infallible>(answer(&shared, &door, request).await) })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT.min(grant.limits.idle()))
        .max_headers(100)
        // The answer is the host's; a date of ours would not be.
        .auto_date_header(false)
        .serve_connection(TokioIo::new(guarded), service);
    let outcome = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    let mut stream = connection.into_parts().io.into_inner().into_inner();
    // What the guard refused, hyper only knows as a broken stream: the client gets its answer here.
    let refused = reason.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (outcome, refused) {
        // Before the first request hyper takes a stream that breaks for one that ends, which is no error.
        (_, Some(refusal)) => {
            let error = EgressError::Refused(refusal);
            shared.open_record(&grant, door.via()).ended(&error);
            let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&refuse_raw(&error))).await;
        }
        // Hyper has answered it, before anything of ours saw a request.
        (Err(error), None) if error.is_parse() => {
            shared
                .open_record(&grant, door.via())
                .ended(&ambiguous(&format!("it is not valid HTTP/1.1: {error}")).into());
        }
        _ => {}
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.shutdown()).await;
}

async fn answer(shared: &Shared, door: &Door, request: Request<Incoming>) -> Response<OutBody> {
    match forward(shared, door, request).await {
        Ok(Answer { mut head, body, .. }) => {
            strip_hop_by_hop(&mut head.headers);
            // Built anew: nothing of the host's but status, headers and body goes on.
            let mut response = Response::new(body.boxed_unsync());
            *response.status_mut() = head.status;
            *response.headers_mut() = head.headers;
            response
        }
        Err(error) => refuse(&error),
    }
}

async fn forward(shared: &Shared, door: &Door, request: Request<Incoming>) -> Result<Answer, EgressError> {
    let grant = shared.grant();
    let deadline = Instant::now() + grant.limits.time();
    let mut record = shared.open_record(&grant, door.via());
    record.edit().inspected = matches!(door, Door::Inside(inside) if inside.scheme == Scheme::Https);
    let judged = access(shared, door, request.headers()).and_then(|()| target_of(door, &request));
    let target = match judged {
        Ok(target) => target,
        Err(error) => {
            record.ended(&error);
            return Err(error);
        }
    };
    let (head, body) = request.into_parts();
    let outgoing = Outgoing { target, method: head.method, headers: head.headers, body };
    exchange(&shared.egress, &grant, outgoing, record, deadline).await
}

/// The token is shown with each request to the proxy itself; a tunnel has shown it when it was opened.
fn access(shared: &Shared, door: &Door, headers: &HeaderMap) -> Result<(), EgressError> {
    match door {
        Door::Proxy => {
            authorised(&shared.access, headers.get(PROXY_AUTHORIZATION).and_then(|value| value.to_str().ok()))
        }
        Door::Inside(_) => Ok(()),
    }
}

/// Where a request goes, if its first line, its `Host` header and its tunnel agree.
fn target_of(door: &Door, request: &Request<Incoming>) -> Result<Target, EgressError> {
    if request.method() == Method::CONNECT {
        return Err(Refusal::new(RefusalReason::Unsupported, "`CONNECT` must be sent on a new connection").into());
    }
    let uri = request.uri();
    let path = uri.path();
    let named = match (uri.scheme_str(), uri.authority()) {
        (Some(scheme), Some(authority)) => {
            let scheme = match scheme.to_ascii_lowercase().as_str() {
                "http" => Scheme::Http,
                "https" => Scheme::Https,
                other => return Err(ambiguous(&format!("its scheme is `{}`", other.escape_debug())).into()),
            };
            let (host, port) = parse_authority(authority.as_str())?;
            let port = port.or(scheme.default_port()).ok_or_else(|| ambiguous("it names no port"))?;
            Some((scheme, host, port))
        }
        (None, None) => None,
        _ => return Err(ambiguous("its target is neither a full URL nor a path").into()),
    };
    let (scheme, host, port) = match (door, named) {
        (Door::Proxy, Some(named)) => named,
        (Door::Proxy, None) => {
            return Err(ambiguous("a request to a proxy must have the full URL in its first line").into());
        }
        (Door::Inside(inside), None) => (inside.scheme, inside.host.clone(), inside.port),
        (Door::Inside(inside), Some((scheme, host, port))) => {
            if (scheme, &host, port) != (inside.scheme, &inside.host, inside.port) {
                let message = format!("the request is refused: its host differs from its tunnel to `{}`", inside.host);
                return Err(Refusal::new(RefusalReason::HostHeaderMismatch, message).into());
            }
            (scheme, host, port)
        }
    };
    let target = Target {
        scheme,
        host,
        port,
        path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
        query: uri.query().map(str::to_owned),
    };
    check_host_header(request, &target)?;
    Ok(target)
}

fn check_host_header(request: &Request<Incoming>, target: &Target) -> Result<(), EgressError> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (said, more) = (hosts.next(), hosts.next());
    if more.is_some() {
        return Err(ambiguous("it has more than one `Host` header").into());
    }
    let Some(said) = said else {
        // Only HTTP/1.0 may leave it out, and then the first line says it all.
        let whole = request.version() == Version::HTTP_10 && request.uri().authority().is_some();
        return if whole { Ok(()) } else { Err(ambiguous("it has no `Host` header").into()) };
    };
    let text = said.to_str().map_err(|_| ambiguous("its `Host` header is not text"))?;
    let (host, port) = parse_authority(text)?;
    let port = port.or(target.scheme.default_port());
    if host == target.host && port == Some(target.port) {
        return Ok(());
    }
    let message = format!(
        "the request to `{}` is refused: its `Host` header names `{}`",
        target.authority(),
        text.escape_debug()
    );
    Err(Refusal::new(RefusalReason::HostHeaderMismatch, message).into())
}

/// A stream that gives up on a peer that does not take what it is sent. Reading has its own limits, nearer to what is read.
struct Patient<S> {
    stream: S,
    idle: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    const fn new(stream: S, idle: Duration) -> Self {
        Self { stream, idle, waiting: None }
    }

    fn timed<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let idle = self.idle;
        let timer = self.waiting.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + idle)));
        match timer.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.timed(cx, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.timed(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.timed(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.timed(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
