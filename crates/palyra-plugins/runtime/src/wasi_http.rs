//! `wasi:http/outgoing-handler`, for guests whose language speaks it already.
//!
//! A request through it is a request like any other: the first grant whose rule covers the address and the method is used, the same limits count, the same
//! port sends it. There is no way to name a secret here. Of WASI only what this interface needs is linked: streams, polling, a monotonic clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksCtxView};
use wasmtime_wasi::p2::bindings::{clocks, io};
use wasmtime_wasi::{HostMonotonicClock, WasiCtx};
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttp, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks};

use crate::host::{check_headers, check_method, find_grant};
use crate::services::{HostFailure, HttpRequest, HttpResponse};
use crate::shared::Shared;
use crate::state::{CallClock, CallState};
use crate::usage::HostCall;

/// Requests, answers, streams and waits that a guest may hold at once. They are memory of the host, as the next three are.
pub(crate) const MAX_RESOURCES: usize = 512;
/// Bytes of one set of headers.
const MAX_FIELDS_BYTES: usize = 32 << 10;
/// Bytes of a request's body that wait to be sent on.
const MAX_CHUNK_BYTES: usize = 64 << 10;
/// Bytes of all answers of a call: a guest can keep them without having them in its own memory.
const MAX_ANSWER_BYTES: u64 = 32 << 20;

/// What a guest that uses `wasi:http` holds.
pub(crate) struct WasiState {
    table: ResourceTable,
    http: WasiHttpCtx,
    hooks: Hooks,
    /// For its clock alone; nothing else of it is linked.
    context: WasiCtx,
}

/// Polling and streams live in the table alone.
struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// Links `wasi:http` and what it needs of WASI.
pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    io::error::add_to_linker::<_, Table>(linker, |state| &mut state.wasi().table)?;
    io::poll::add_to_linker::<_, Table>(linker, |state| &mut state.wasi().table)?;
    io::streams::add_to_linker::<_, Table>(linker, |state| &mut state.wasi().table)?;
    clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(linker, |state| {
        let wasi = state.wasi();
        WasiClocksCtxView { ctx: wasi.context.clocks(), table: &mut wasi.table }
    })?;
    let options = LinkOptions::default();
    outgoing_handler::add_to_linker::<_, WasiHttp>(linker, CallState::wasi_view)?;
    types::add_to_linker::<_, WasiHttp>(linker, &options.into(), CallState::wasi_view)
}

impl CallState {
    fn wasi(&mut self) -> &mut WasiState {
        let (shared, clock) = (&self.shared, &self.clock);
        self.wasi.get_or_insert_with(|| {
            let mut table = ResourceTable::new();
            table.set_max_capacity(MAX_RESOURCES);
            let mut http = WasiHttpCtx::new();
            http.set_field_size_limit(MAX_FIELDS_BYTES);
            Box::new(WasiState {
                table,
                http,
                hooks: Hooks { shared: Arc::clone(shared), answered: Arc::default() },
                context: WasiCtx::builder().monotonic_clock(GuestClock(Mutex::new(clock.clone()))).build(),
            })
        })
    }

    fn wasi_view(&mut self) -> WasiHttpCtxView<'_> {
        let wasi = self.wasi();
        WasiHttpCtxView { hooks: &mut wasi.hooks, table: &mut wasi.table, ctx: &mut wasi.http }
    }
}

/// The clock of the call, as WASI reads it.
struct GuestClock(Mutex<CallClock>);

impl HostMonotonicClock for GuestClock {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).monotonic()
    }
}

/// Sends requests through the port.
struct Hooks {
    shared: Arc<Shared>,
    /// Bytes of all answers so far.
    answered: Arc<AtomicU64>,
}

type Answer = Result<(http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

impl WasiHttpHooks for Hooks {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _processed: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Answer> + Send> {
        let (shared, answered) = (Arc::clone(&self.shared), Arc::clone(&self.answered));
        Box::new(async move {
            let result = send(&shared, request).await.and_then(|response| {
                let size = response.body.len() as u64;
                if answered.fetch_add(size, Ordering::Relaxed).saturating_add(size) > MAX_ANSWER_BYTES {
                    return Err(HostFailure::Exhausted("the responses of one call are too large in total".to_owned()));
                }
                Ok(response)
            });
            let response = shared.note(HostCall::WasiHttp, result).map_err(error)?;
            let done: Box<dyn Future<Output = Result<(), Error>> + Send> = Box::new(async { Ok(()) });
            Ok((answer(response)?, done))
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        MAX_CHUNK_BYTES
    }

    /// The way out writes it.
    fn set_host_header(&mut self) -> bool {
        false
    }
}

async fn send(shared: &Shared, request: http::Request<WasiBody>) -> Result<HttpResponse, HostFailure> {
    let too_many = |_| HostFailure::Exhausted("the call has used up its host calls".to_owned());
    shared.count(HostCall::WasiHttp).map_err(too_many)?;
    shared.within(&[HostCall::HttpSend, HostCall::WasiHttp], shared.limits.http, "requests")?;
    let (parts, body) = request.into_parts();
    let (method, url) = (parts.method.as_str().to_owned(), parts.uri.to_string());
    check_method(&method)?;
    let grant = find_grant(shared, &method, &url)?;
    let headers: Vec<(String, Vec<u8>)> = parts
        .headers
        .iter()
        // The guest's library writes the length of the body that we have anyway.
        .filter(|(name, _)| **name != http::header::CONTENT_LENGTH && **name != http::header::TRANSFER_ENCODING)
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect();
    check_headers(&headers)?;
    let body: Pin<Box<_>> = Box::pin(Limited::new(body, shared.limits.bytes_each).collect());
    let body = body.await.map_err(|error| HostFailure::Invalid(crate::text::one_line(&error.to_string())))?;
    let request = HttpRequest { method, url, headers, body: body.to_bytes().to_vec(), credentials: Vec::new() };
    shared.services.http(grant, request).await
}

fn answer(response: HttpResponse) -> Result<http::Response<WasiBody>, Error> {
    let mut builder = http::Response::builder().status(response.status);
    for (name, value) in &response.headers {
        builder = builder.header(name, value.as_slice());
    }
    let body = Full::new(Bytes::from(response.body)).map_err(|never| match never {}).boxed_unsync();
    builder.body(body).map_err(|_| Error::HttpProtocolError)
}

/// As `wasi:http` says it.
fn error(failure: HostFailure) -> Error {
    match failure {
        HostFailure::NoGrant | HostFailure::Denied(_) => Error::HttpRequestDenied,
        HostFailure::Invalid(reason) => Error::InternalError(Some(reason)),
        HostFailure::Exhausted(_) => Error::ConnectionLimitReached,
        HostFailure::Unreachable(_) => Error::DestinationUnavailable,
        HostFailure::TimedOut => Error::ConnectionTimeout,
    }
}
