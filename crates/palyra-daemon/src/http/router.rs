//! Which handler answers where, and who may ask there. Nothing else is served.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, head, post};
use http::{Method, Uri};
use palyra_client::api::paths;
use palyra_common::{ErrorCategory, StableErrorEnvelope};
use tower::ServiceExt as _;

use super::error::ApiError;
use super::extract::MAX_BODY_BYTES;
use super::{acp, attachments, canvas, console, description, events, headers, health, held, observe, rest, socket};
use crate::app::App;
use crate::auth::{Access, Peer, Shown};
use crate::dispatch::{self, Caller, ReadBudget, Transport};
use crate::serve::{Accepted, Answers, Connection, Crowded};
use crate::{mcp, openai};

/// Everything that is served over HTTP, behind the one place that lets callers in.
///
/// No layers of the router: layers are copied and boxed for each request and each of them.
#[derive(Clone)]
pub(crate) struct Front {
    app: Arc<App>,
    router: Router,
}

impl Front {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { router: router(Arc::clone(&app)), app }
    }
}

impl Answers for Front {
    async fn answer(self, mut request: Request, accepted: Arc<Accepted>) -> Response {
        if is_health(&request) {
            return match self.admit_to_health(&request, &accepted) {
                Ok(None) => health::show(&self.app, health::Reader::Stranger).await,
                Ok(Some(answers)) => held::until_taken(health::show(&self.app, health::Reader::Known).await, &answers),
                Err(refused) => with_headers(*refused),
            };
        }
        accepted.note_on(&mut request);
        // Boxed, so that a connection has no room set aside for the largest of all handlers.
        Box::pin(self.routed(request)).await
    }
}

impl Front {
    /// Answers a request on which it is noted where it comes from.
    pub(crate) async fn routed(self, mut request: Request) -> Response {
        let Self { app, router } = self;
        // Before any route is looked for: nobody unknown learns even which routes there are.
        let answers = match admit(&app, &mut request) {
            Ok(answers) => answers,
            Err(refused) => return with_headers(*refused),
        };
        let answer = match router.oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        with_headers(match answers {
            Some(answers) => held::until_taken(answer, &answers),
            None => answer,
        })
    }

    fn admit_to_health(&self, request: &Request, accepted: &Accepted) -> Result<Option<ReadBudget>, Box<Response>> {
        let public = public_peer(&self.app, Some(&accepted.peer), request);
        let peer = public.as_ref().unwrap_or(&accepted.peer);
        match let_in(&self.app, request, Some(peer), Some(&accepted.connection)) {
            Ok(caller) => Ok(caller.map(|caller| dispatch::answers_to(&self.app, &caller))),
            Err(refused) => Err(Box::new(ApiError::new(refused).into_response())),
        }
    }
}

/// Asked more often than anything else: looking for its route would be most of the work.
fn is_health(request: &Request) -> bool {
    request.method() == Method::GET && request.uri().path() == paths::HEALTH
}

fn with_headers(mut answer: Response) -> Response {
    headers::add(answer.headers_mut());
    answer
}

fn router(app: Arc<App>) -> Router {
    Router::new()
        .route(paths::READY, get(observe::ready))
        .route(paths::METRICS, get(observe::metrics))
        .merge(rest::routes("/api/v1"))
        .merge(rest::routes("/console/v1"))
        .route(paths::RUN_EVENTS, get(events::stream))
        .route("/console/v1/runs/{run_id}/events", get(events::stream))
        .route(paths::ATTACHMENT_FORM, post(attachments::add))
        .route("/console/v1/attachments/form", post(attachments::add))
        .route(paths::ACP_COMMAND, post(acp::command))
        .route(paths::ACP_SOCKET, any(socket::open))
        .route("/console/v1/ws", any(socket::open))
        .route(description::PATH, get(description::show))
        .route(console::LOGIN, post(console::log_in).layer(DefaultBodyLimit::max(console::MAX_LOGIN_BYTES)))
        .route(console::LOGOUT, post(console::log_out))
        .route(console::SESSION, get(console::session))
        .merge(canvas::routes())
        .nest(openai::PREFIX, openai::routes())
        .merge(mcp::routes())
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        // GET is answered before any route is looked for.
        .route(paths::HEALTH, head(health::head).fallback(no_method))
        .with_state(app)
}

/// Notes who asks, or gives the answer to whoever may not. What is known of a caller is what may be held of the answers to it.
fn admit(app: &Arc<App>, request: &mut Request) -> Result<Option<ReadBudget>, Box<Response>> {
    locate(app, request);
    let extensions = request.extensions();
    match let_in(app, request, extensions.get::<Peer>(), extensions.get::<Connection>()) {
        Ok(Some(caller)) => {
            let answers = dispatch::answers_to(app, &caller);
            request.extensions_mut().insert(caller);
            Ok(Some(answers))
        }
        Ok(None) => Ok(None),
        Err(refused) if openai::serves(request.uri().path()) => Err(Box::new(openai::refused(refused))),
        Err(refused) => Err(Box::new(ApiError::new(refused).into_response())),
    }
}

/// Who asks: nobody known, where that is enough.
fn let_in(
    app: &App,
    request: &Request,
    peer: Option<&Peer>,
    connection: Option<&Connection>,
) -> Result<Option<Caller>, StableErrorEnvelope> {
    let shown = Shown { peer, connection, method: request.method(), uri: request.uri(), headers: request.headers() };
    let Some(principal) = app.gate.admit(&shown, access(request.uri().path()))? else {
        Crowded::check(request.extensions())?;
        return Ok(None);
    };
    let trace = request.headers().get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let caller = Caller::new(principal, Transport::Http).in_trace(trace);
    Ok(Some(match connection {
        Some(connection) => caller.on(connection),
        None => caller,
    }))
}

/// Notes who is behind a proxy, for the gate and for every handler.
pub(crate) fn locate(app: &App, request: &mut Request) {
    if let Some(peer) = public_peer(app, request.extensions().get::<Peer>(), request) {
        request.extensions_mut().insert(peer);
    }
}

fn public_peer(app: &App, peer: Option<&Peer>, request: &Request) -> Option<Peer> {
    app.gate.public_peer(peer?, request.uri(), request.headers())
}

/// Whom a path is for.
fn access(path: &str) -> Access {
    match path {
        paths::HEALTH | paths::READY => Access::Either,
        console::LOGIN => Access::Open,
        // The token in the address is looked at by the handlers.
        path if path.starts_with(canvas::PREFIX) => Access::Open,
        path if path.starts_with("/console/") => Access::Console,
        _ => Access::Known,
    }
}

async fn no_route(uri: Uri) -> ApiError {
    let path = uri.path();
    // Clients of OpenAI show the message alone, so it says what to change.
    let (message, hint) = if crate::openai::is_route(path) {
        (
            format!("there is no route `{path}`: the OpenAI-compatible interface is below `/v1`"),
            "let the base URL of the client end with `/v1`, such as `http://127.0.0.1:7142/v1`",
        )
    } else {
        (format!("there is no route `{path}`"), "routes begin with `/api/v1/`; a newer client may need a newer daemon")
    };
    ApiError::new(StableErrorEnvelope::new("route_not_found", ErrorCategory::NotFound, message).hint(hint))
}

async fn no_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("`{}` does not support {method}", uri.path());
    ApiError::new(
        StableErrorEnvelope::new("method_not_allowed", ErrorCategory::Validation, message)
            .hint("use GET to read and POST to change"),
    )
}
