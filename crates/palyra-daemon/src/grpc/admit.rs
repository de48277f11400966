//! Who may call, and for how long: every call passes here before any service sees it.
//!
//! A caller is whoever its bearer token or client certificate proves. Only the standard health service answers strangers.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode, Version};
use tonic::Status;

use super::bounded::{Bounded, Cut, Streams};
use super::deadline::Deadline;
use super::status;
use crate::app::App;
use crate::auth::{Access, Peer, Shown};
use crate::dispatch::{self, Caller, ReadBudget, Refusal, Transport};
use crate::serve::{Connection, Crowded};

/// The standard health service, which load balancers ask without a credential.
const OPEN: &str = "/grpc.health.v1.Health/";

pub(super) async fn call(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if request.version() != Version::HTTP_2 {
        // There is no way to say this in gRPC to somebody who does not speak it.
        return plain(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "this is a gRPC interface: it needs HTTP/2\n");
    }
    let Ok(deadline) = Deadline::of_call(request.headers()) else { return status::bad_timeout().into_http() };
    let path = request.uri().path().to_owned();
    crate::http::locate(&app, &mut request);
    let access = if path.starts_with(OPEN) { Access::Open } else { Access::Known };
    let shown = Shown {
        peer: request.extensions().get::<Peer>(),
        connection: request.extensions().get::<Connection>(),
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
    };
    let answers = match app.gate.admit(&shown, access) {
        Ok(Some(principal)) => {
            let trace = request.headers().get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
            let mut caller = Caller::new(principal, Transport::Grpc).in_trace(trace);
            if let Some(connection) = shown.connection {
                caller = caller.on(connection);
            }
            let answers = Answers::of(&app, &caller);
            request.extensions_mut().insert(caller);
            Some(answers)
        }
        Ok(None) => {
            if let Err(envelope) = Crowded::check(request.extensions()) {
                return status::of_envelope(&envelope).into_http();
            }
            None
        }
        Err(envelope) => return status::of_envelope(&envelope).into_http(),
    };
    if deadline.is_over() {
        return status::too_late().into_http();
    }
    // Dropped with everything under it when the time is up.
    let response = tokio::select! {
        biased;
        response = next.run(request) => response,
        () = deadline.passed() => return status::too_late().into_http(),
    };
    finished(response, &path, cut(&app, deadline), answers)
}

/// What may be held of the answers to a caller.
struct Answers {
    streams: ReadBudget,
    commands: ReadBudget,
}

impl Answers {
    fn of(app: &App, caller: &Caller) -> Self {
        Self { streams: dispatch::streams_to(app, caller), commands: dispatch::answers_to(app, caller) }
    }
}

/// What may end an answer that has begun.
fn cut(app: &Arc<App>, deadline: Deadline) -> Cut {
    let closing = app.closing.clone();
    Box::pin(async move {
        tokio::select! {
            () = closing.cancelled() => Status::from(Refusal::stopping()),
            () = deadline.passed() => status::too_late(),
        }
    })
}

/// An answer with an envelope if it is a refusal, and with an end if it is a stream.
fn finished(response: Response, path: &str, cut: Cut, answers: Option<Answers>) -> Response {
    match Status::from_header_map(response.headers()) {
        Some(refused) if refused.code() != tonic::Code::Ok => status::of_library(refused, path).into_http(),
        _ => {
            let streams = response.extensions().get::<Streams>().is_some();
            let budget = answers.map(|answers| if streams { answers.streams } else { answers.commands });
            let mut response = response.map(|body| Bounded::new(body, cut, budget));
            if !streams {
                // A message takes as much room before it is written as afterwards, and only then is it known how much.
                response.body_mut().write_first();
            }
            response.map(Body::new)
        }
    }
}

fn plain(code: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
