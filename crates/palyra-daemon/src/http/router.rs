//! Which handler answers where, and who may ask there. Nothing else is served.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post};
use http::{Method, Uri};
use palyra_client::api::paths;
use palyra_common::{ErrorCategory, StableErrorEnvelope};
use tower::{Service, ServiceExt as _};

use super::error::ApiError;
use super::extract::MAX_BODY_BYTES;
use super::{acp, attachments, canvas, console, description, events, headers, health, observe, rest, socket};
use crate::app::App;
use crate::auth::{Access, Peer, Shown};
use crate::dispatch::{Caller, Transport};
use crate::serve::{Connection, Crowded};
use crate::{mcp, openai};

/// Everything that is served over HTTP, behind the one place that lets callers in.
///
/// A service of its own rather than layers of the router: layers are copied and boxed for each request and each of them.
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

impl Service<Request> for Front {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let Self { app, router } = self.clone();
        Box::pin(async move {
            // Before any route is looked for: nobody unknown learns even which routes there are.
            let mut answer = match admit(&app, &mut request) {
                Ok(()) => router.oneshot(request).await?,
                Err(refused) => *refused,
            };
            headers::add(answer.headers_mut());
            Ok(answer)
        })
    }
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
        // Asked more often than anything else and without a body, so it is not wrapped.
        .route(paths::HEALTH, get(health::show).fallback(no_method))
        .with_state(app)
}

/// Notes who asks, or gives the answer to whoever may not.
fn admit(app: &Arc<App>, request: &mut Request) -> Result<(), Box<Response>> {
    locate(app, request);
    let access = access(request.uri().path());
    let shown = Shown {
        peer: request.extensions().get::<Peer>(),
        connection: request.extensions().get::<Connection>(),
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
    };
    match app.gate.admit(&shown, access) {
        Ok(Some(principal)) => {
            let trace = request.headers().get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
            let mut caller = Caller::new(principal, Transport::Http).in_trace(trace);
            if let Some(connection) = shown.connection {
                caller = caller.on(connection);
            }
            request.extensions_mut().insert(caller);
        }
        Ok(None) => {
            Crowded::check(request.extensions()).map_err(|refused| Box::new(ApiError::new(refused).into_response()))?;
        }
        Err(refused) if openai::serves(request.uri().path()) => return Err(Box::new(openai::refused(refused))),
        Err(refused) => return Err(Box::new(ApiError::new(refused).into_response())),
    }
    Ok(())
}

/// Notes who is behind a proxy, for the gate and for every handler.
pub(crate) fn locate(app: &App, request: &mut Request) {
    let peer = request.extensions().get::<Peer>();
    let public = peer.and_then(|peer| app.gate.public_peer(peer, request.uri(), request.headers()));
    if let Some(peer) = public {
        request.extensions_mut().insert(peer);
    }
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
