//! The exchange itself, in the order that makes it safe: decide, resolve and judge, fill in, connect to the judged address, send, judge the
//! answer's head. The body that is returned goes on being watched.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, HOST, HeaderMap, HeaderValue,
    IF_RANGE, RANGE, TRANSFER_ENCODING,
};
use http::{Method, Request, StatusCode, Uri, response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::body::{BodyLimits, BoxError, Direction, GuardedBody, egress_error_of};
use super::headers::strip_hop_by_hop;
use super::overrides::check_overrides;
use crate::egress::Egress;
use crate::error::{EgressError, Refusal, RefusalReason};
use crate::log::OpenRecord;
use crate::resolve::Pinned;
use crate::rules::{EgressGrant, Request as Asked, Verdict, check};
use crate::scan::{Needles, Scanner};
use crate::secrets::inject;
use crate::target::{Scheme, Target};

/// Most headers of an answer; hyper's own default.
const HEADER_COUNT: usize = 100;

/// A request that is to be made.
pub(crate) struct Outgoing<B> {
    pub(crate) target: Target,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: B,
}

/// What came back: the head, judged, and the body, watched.
pub(crate) struct Answer {
    pub(crate) head: response::Parts,
    pub(crate) body: GuardedBody<Incoming>,
    pub(crate) address: Option<IpAddr>,
}

/// Makes one request under a grant. Whatever happens is noted in the record.
pub(crate) async fn exchange<B>(
    egress: &Egress,
    grant: &EgressGrant,
    outgoing: Outgoing<B>,
    mut record: OpenRecord,
    deadline: Instant,
) -> Result<Answer, EgressError>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    record.goes_to(Some(outgoing.target.scheme), &outgoing.target.host, outgoing.target.port);
    record.asks(outgoing.method.as_str(), &outgoing.target.path);
    let limit = grant.limits.time();
    let attempt = tokio::time::timeout_at(deadline, begin(egress, grant, outgoing, &mut record, deadline)).await;
    match attempt.unwrap_or(Err(EgressError::TimedOut { what: "the whole exchange", limit })) {
        Ok(Begun { mut head, body, needles, connection, address }) => {
            record.edit().status = Some(head.status.as_u16());
            let masked = needles.as_deref().map_or(0, |needles| mask_headers(needles, &mut head.headers));
            record.meter().masked.fetch_add(masked, std::sync::atomic::Ordering::Relaxed);
            let meter = Arc::clone(record.meter());
            let limits = body_limits(grant, grant.limits.download_bytes, deadline);
            let body = GuardedBody::new(body, Direction::Down, limits, meter)
                .scanned(needles.map(Scanner::new))
                .keeping(record, connection);
            Ok(Answer { head, body, address })
        }
        Err(error) => {
            record.ended(&error);
            Err(error)
        }
    }
}

struct Begun {
    head: response::Parts,
    body: Incoming,
    needles: Option<Arc<Needles>>,
    connection: AbortOnDropHandle<()>,
    address: Option<IpAddr>,
}

fn body_limits(grant: &EgressGrant, bytes: u64, deadline: Instant) -> BodyLimits {
    BodyLimits { bytes, idle: grant.limits.idle(), time: grant.limits.time(), deadline }
}

async fn begin<B>(
    egress: &Egress,
    grant: &EgressGrant,
    outgoing: Outgoing<B>,
    record: &mut OpenRecord,
    deadline: Instant,
) -> Result<Begun, EgressError>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let Outgoing { mut target, method, mut headers, body } = outgoing;
    match check(grant, &Asked::visible(&target, method.as_str())) {
        Verdict::Allowed(rule) | Verdict::Inspect(rule) => check_overrides(rule, &headers, target.query.as_deref())?,
        Verdict::Refused(refusal) => return Err(refusal.into()),
    }
    let parts = egress.parts();
    let pinned = Pinned::resolve(&*parts.resolver, grant, &target.host, target.port).await?;
    record.edit().address = pinned.first();

    strip_hop_by_hop(&mut headers);
    let authority = HeaderValue::from_str(&target.authority()).map_err(|error| protocol(&target, &error))?;
    headers.insert(HOST, authority);
    let injected = inject(&*parts.secrets, grant, &mut target, &mut headers).await?;
    record.edit().credentials = injected.count;
    let needles = (!injected.secrets.is_empty()).then(|| Arc::new(Needles::of(&injected.secrets)));
    if needles.is_some() {
        // The answer has to be readable in one piece: compressed, or in ranges, the secret would not be found in it.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.remove(RANGE);
        headers.remove(IF_RANGE);
    }

    let stream = pinned.connect(grant.limits.connect()).await?;
    record.edit().address = stream.peer_addr().ok().map(|peer| peer.ip());
    let address = record.edit().address;
    let limits = body_limits(grant, grant.limits.upload_bytes, deadline);
    let body = GuardedBody::new(body, Direction::Up, limits, Arc::clone(record.meter()));
    let uri: Uri = target.path_and_query().parse().map_err(|error| protocol(&target, &error))?;
    let mut request = Request::new(body);
    let asks_for_body = if method == Method::HEAD { Asks::Head } else { Asks::Body };
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    let (head, body, connection) = match target.scheme {
        Scheme::Https => {
            let stream = parts.trusted.connect(stream, &target.host, grant.limits.connect()).await?;
            send(stream, request, grant, &target).await?
        }
        Scheme::Http => send(stream, request, grant, &target).await?,
        Scheme::Tcp => {
            return Err(Refusal::new(RefusalReason::Unsupported, "a `tcp` target cannot carry HTTP requests").into());
        }
    };
    judge_head(&head, grant, asks_for_body, needles.as_deref(), &target)?;
    Ok(Begun { head, body, needles, connection, address })
}

async fn send<S, B>(
    stream: S,
    request: Request<GuardedBody<B>>,
    grant: &EgressGrant,
    target: &Target,
) -> Result<(response::Parts, Incoming, AbortOnDropHandle<()>), EgressError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let failed = |error: hyper::Error| match egress_error_of(&error) {
        // The body of the request broke a limit: that is what happened, not a failure of the host.
        Some(EgressError::TooLarge { what, limit }) => EgressError::TooLarge { what, limit: *limit },
        Some(EgressError::TimedOut { what, limit }) => EgressError::TimedOut { what, limit: *limit },
        _ => protocol(target, &error),
    };
    let (mut sender, connection) = http1::Builder::new()
        .max_headers(HEADER_COUNT)
        .max_header_size(grant.limits.header_bytes)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    // Ends with the body of the answer, which holds the handle.
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        let _ = connection.await;
    }));
    let answer = sender.send_request(request).await.map_err(failed)?;
    let (head, body) = answer.into_parts();
    Ok((head, body, connection))
}

/// Whether an answer with a length also has that many bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    Head,
    Body,
}

fn judge_head(
    head: &response::Parts,
    grant: &EgressGrant,
    asks: Asks,
    needles: Option<&Needles>,
    target: &Target,
) -> Result<(), EgressError> {
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(protocol(target, &"the server switched to another protocol"));
    }
    let coded = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"chunked");
    if let Some(coding) = head.headers.get_all(TRANSFER_ENCODING).iter().find(|value| coded(value)) {
        let coding = String::from_utf8_lossy(coding.as_bytes());
        return Err(protocol(target, &format!("its transfer coding `{}` is not supported", coding.escape_debug())));
    }
    let announced = head
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<u64>().ok());
    if asks == Asks::Body && announced.is_some_and(|bytes| bytes > grant.limits.download_bytes) {
        return Err(EgressError::TooLarge { what: "the response", limit: grant.limits.download_bytes });
    }
    if needles.is_some() {
        let coded = head
            .headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
        let in_part = head.status == StatusCode::PARTIAL_CONTENT || head.headers.contains_key(CONTENT_RANGE);
        if coded || in_part {
            let what = if coded { "it is compressed" } else { "it is only a part" };
            let message = format!(
                "the response from `{}` is refused: {what}, so it cannot be scanned for the bound secret",
                target.host
            );
            return Err(Refusal::new(RefusalReason::AnswerNotSearchable, message).into());
        }
    }
    Ok(())
}

/// Overwrites secrets in the headers of an answer; says how many were found.
fn mask_headers(needles: &Needles, headers: &mut HeaderMap) -> u64 {
    let mut masked = 0;
    for value in headers.values_mut() {
        if let Some((clean, found)) = needles.mask_whole(value.as_bytes()) {
            *value = HeaderValue::from_bytes(&clean).unwrap_or_else(|_| HeaderValue::from_static("*"));
            masked += found;
        }
    }
    // A secret could also stand in the name of a header, in lower case.
    let odd: Vec<_> =
        headers.keys().filter(|name| needles.mask_whole(name.as_str().as_bytes()).is_some()).cloned().collect();
    for name in odd {
        headers.remove(name);
        masked += 1;
    }
    headers.remove(ACCEPT_RANGES);
    masked
}

fn protocol(target: &Target, error: &dyn std::fmt::Display) -> EgressError {
    EgressError::Protocol { host: target.host.to_string(), reason: error.to_string() }
}
