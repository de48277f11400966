//! A tunnel to one host, asked for by `CONNECT` or SOCKS5.
//!
//! What may go through is decided by what comes first. A TLS greeting must name the host that was asked for; it is then passed on unseen,
//! or opened where the grant says so. Plain HTTP is served request by request under the same rules. Anything else needs a `tcp` rule. The greeting
//! reaches the host only after it was judged.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::door::{HEAD_LIMIT, say};
use super::hello::{ClientHello, HelloOutcome, read_client_hello};
use super::relay::{relay, write_all};
use super::requests::{self, Door};
use super::rewind::Rewind;
use super::service::Shared;
use crate::error::{EgressError, Refusal, RefusalReason};
use crate::host::Host;
use crate::log::{OpenRecord, Via};
use crate::resolve::Pinned;
use crate::rules::{EgressGrant, Request, Verdict, check, check_connect};
use crate::target::Scheme;

/// What a client asked for.
pub(super) struct Opening {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) via: Via,
    /// What it sent behind its request, without waiting for the answer.
    pub(super) sent: Vec<u8>,
}

/// What the grant lets through.
struct Plan {
    /// Bytes that nobody looks at.
    anything: bool,
    tls: Tls,
    plain_http: bool,
}

enum Tls {
    PassOn,
    Open,
    Refused(Refusal),
}

/// TLS alerts: the client learns more from one than from a closed connection.
const UNRECOGNISED_NAME: u8 = 112;
const ACCESS_DENIED: u8 = 49;

/// Serves a tunnel. `established` is what a client hears when it may begin, `refusal` what it hears otherwise.
pub(super) async fn serve(
    shared: Arc<Shared>,
    mut client: TcpStream,
    opening: Opening,
    established: &[u8],
    refusal: &(dyn Fn(&EgressError) -> Vec<u8> + Sync),
) {
    let grant = shared.grant();
    let mut record = shared.open_record(&grant, opening.via);
    record.goes_to(None, &opening.host, opening.port);
    let deadline = Instant::now() + grant.limits.time();
    let prepared = prepare(&shared, &grant, &opening, &mut record).await;
    let (plan, host) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            record.ended(&error);
            drop(record);
            return say(&mut client, &refusal(&error)).await;
        }
    };
    if client.write_all(established).await.is_err() {
        return;
    }
    if let Err(error) = begin(&shared, &grant, client, opening, plan, host, &mut record, deadline).await {
        record.ended(&error);
    }
}

/// Decides what may go through, and connects where bytes will be passed on, so that a dead host is reported while that is still possible.
async fn prepare(
    shared: &Shared,
    grant: &EgressGrant,
    opening: &Opening,
    record: &mut OpenRecord,
) -> Result<(Plan, Option<TcpStream>), EgressError> {
    let Opening { host, port, .. } = opening;
    check_connect(grant, host, *port)?;
    let allowed = |scheme| check(grant, &Request::tunnel(scheme, host, *port));
    let tls = match allowed(Scheme::Https) {
        Verdict::Allowed(_) => Tls::PassOn,
        Verdict::Inspect(_) => Tls::Open,
        Verdict::Refused(refusal) => Tls::Refused(refusal),
    };
    let plan = Plan {
        anything: matches!(allowed(Scheme::Tcp), Verdict::Allowed(_)),
        tls,
        plain_http: grant
            .rules
            .iter()
            .any(|rule| rule.scheme == Scheme::Http && rule.port == *port && rule.host.matches(host)),
    };
    if let (Tls::Refused(refusal), false, false) = (&plan.tls, plan.anything, plan.plain_http) {
        return Err(refusal.clone().into());
    }
    let pinned = Pinned::resolve(&*shared.egress.parts().resolver, grant, host, *port).await?;
    record.edit().address = pinned.first();
    if !plan.anything && !matches!(plan.tls, Tls::PassOn) {
        return Ok((plan, None));
    }
    let stream = pinned.connect(grant.limits.connect()).await?;
    record.edit().address = stream.peer_addr().ok().map(|peer| peer.ip());
    Ok((plan, Some(stream)))
}

#[expect(clippy::too_many_arguments, reason = "one private step of `serve`, split off for its error path")]
async fn begin(
    shared: &Arc<Shared>,
    grant: &EgressGrant,
    mut client: TcpStream,
    opening: Opening,
    plan: Plan,
    host: Option<TcpStream>,
    record: &mut OpenRecord,
    deadline: Instant,
) -> Result<(), EgressError> {
    let Opening { host: name, port, via, sent: mut first } = opening;
    if let (true, Some(host)) = (plan.anything, &host) {
        record.edit().scheme = Some(Scheme::Tcp);
        return pass_on(&client, host, &first, grant, deadline, record).await;
    }
    let limit = HEAD_LIMIT.min(grant.limits.idle());
    let hello = tokio::time::timeout(limit, read_hello(&mut client, &mut first)).await;
    let hello = hello.map_err(|_| EgressError::TimedOut { what: "waiting for the first bytes of a tunnel", limit })?;
    let hello = match hello {
        HelloOutcome::Hello(hello) => hello,
        HelloOutcome::NotTls if plan.plain_http => {
            drop(host);
            // Each request inside writes its own record.
            record.discard();
            requests::serve(
                Arc::clone(shared),
                Rewind::new(first, client),
                Door::inside(Scheme::Http, name, port, via),
            )
            .await;
            return Ok(());
        }
        HelloOutcome::Incomplete if first.is_empty() => return Ok(()),
        HelloOutcome::NotTls | HelloOutcome::Incomplete | HelloOutcome::Malformed => {
            let message =
                format!("the tunnel to `{name}` port {port} is refused: it does not start with a TLS ClientHello");
            let alert = matches!(hello, HelloOutcome::Malformed).then_some(ACCESS_DENIED);
            return Err(turn_away(&mut client, alert, Refusal::new(RefusalReason::NotTls, message)).await);
        }
    };
    record.edit().scheme = Some(Scheme::Https);
    if let Err(refusal) = judge_name(&hello, &name) {
        return Err(turn_away(&mut client, Some(UNRECOGNISED_NAME), refusal).await);
    }
    match (plan.tls, host) {
        (Tls::PassOn, Some(host)) => pass_on(&client, &host, &first, grant, deadline, record).await,
        (Tls::Open, _) => open(shared, client, first, (name, port, via), record).await,
        (Tls::Refused(refusal), _) => Err(turn_away(&mut client, Some(ACCESS_DENIED), refusal).await),
        (Tls::PassOn, None) => {
            Err(EgressError::Protocol { host: name.to_string(), reason: "it is not connected".to_owned() })
        }
    }
}

async fn read_hello(client: &mut TcpStream, first: &mut Vec<u8>) -> HelloOutcome {
    loop {
        match read_client_hello(first) {
            HelloOutcome::Incomplete => {}
            outcome => return outcome,
        }
        if client.read_buf(first).await.unwrap_or(0) == 0 {
            return HelloOutcome::Incomplete;
        }
    }
}

/// A greeting must name exactly the host of the tunnel; a tunnel to an address names none.
fn judge_name(hello: &ClientHello, host: &Host) -> Result<(), Refusal> {
    if hello.hidden_name {
        let message = format!("the tunnel to `{host}` is refused: its TLS ClientHello has an encrypted server name");
        return Err(Refusal::new(RefusalReason::ServerNameHidden, message));
    }
    match (&hello.server_name, host) {
        (None, Host::Address(_)) => Ok(()),
        (None, Host::Name(_)) => {
            let message = format!("the tunnel to `{host}` is refused: its TLS ClientHello has no server name");
            Err(Refusal::new(RefusalReason::ServerNameMissing, message))
        }
        (Some(said), _) if Host::parse(said).as_ref() == Ok(host) => Ok(()),
        (Some(said), _) => {
            let message =
                format!("the tunnel to `{host}` is refused: its TLS ClientHello names `{}`", said.escape_debug());
            Err(Refusal::new(RefusalReason::ServerNameMismatch, message))
        }
    }
}

async fn turn_away(client: &mut TcpStream, alert: Option<u8>, refusal: Refusal) -> EgressError {
    let bytes = alert.map(|alert| vec![21, 3, 1, 0, 2, 2, alert]).unwrap_or_default();
    say(client, &bytes).await;
    refusal.into()
}

async fn pass_on(
    client: &TcpStream,
    host: &TcpStream,
    first: &[u8],
    grant: &EgressGrant,
    deadline: Instant,
    record: &OpenRecord,
) -> Result<(), EgressError> {
    let meter = record.meter();
    write_all(host, first).await?;
    meter.up.fetch_add(first.len() as u64, std::sync::atomic::Ordering::Relaxed);
    relay(client, host, &grant.limits, deadline, meter).await
}

/// Ends the client's TLS with a certificate of the sandbox's own authority and serves the requests inside.
async fn open(
    shared: &Arc<Shared>,
    client: TcpStream,
    first: Vec<u8>,
    (host, port, via): (Host, u16, Via),
    record: &mut OpenRecord,
) -> Result<(), EgressError> {
    record.edit().inspected = true;
    let failed = |reason: String| EgressError::TlsFailed { host: host.to_string(), reason };
    let authority =
        shared.authority.as_ref().ok_or_else(|| failed("the proxy has no certificate authority".to_owned()))?;
    let acceptor = TlsAcceptor::from(authority.server_config(&host)?);
    let handshake = tokio::time::timeout(HEAD_LIMIT, acceptor.accept(Rewind::new(first, client))).await;
    let stream = handshake
        .map_err(|_| EgressError::TimedOut { what: "the TLS handshake", limit: HEAD_LIMIT })?
        .map_err(|error| {
            failed(format!("the client in the sandbox does not trust the sandbox's certificate authority: {error}"))
        })?;
    // Each request inside writes its own record.
    record.discard();
    requests::serve(Arc::clone(shared), stream, Door::inside(Scheme::Https, host, port, via)).await;
    Ok(())
}
