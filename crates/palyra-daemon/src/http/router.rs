//! Which handler answers where, and who may ask there. Nothing else is served.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get, post};
use http::{Method, Uri};
use palyra_client::api::paths;
use palyra_common::{ErrorCategory, StableErrorEnvelope};

use super::error::{ApiError, ApiResult};
use super::extract::MAX_BODY_BYTES;
use super::{acp, console, description, events, headers, health, observe, rest, socket};
use crate::app::App;
use crate::auth::{Access, Peer, Shown};
use crate::dispatch::{Caller, Transport};
use crate::{mcp, openai};

/// Everything that is served over HTTP.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route(paths::HEALTH, get(health::show))
        .route(paths::READY, get(observe::ready))
        .route(paths::METRICS, get(observe::metrics))
        .merge(rest::routes("/api/v1"))
        .merge(rest::routes("/console/v1"))
        .route(paths::RUN_EVENTS, get(events::stream))
        .route("/console/v1/runs/{run_id}/events", get(events::stream))
        .route(paths::ACP_COMMAND, post(acp::command))
        .route(paths::ACP_SOCKET, any(socket::open))
        .route("/console/v1/ws", any(socket::open))
        .route(description::PATH, get(description::show))
        .route(console::LOGIN, post(console::log_in))
        .route(console::LOGOUT, post(console::log_out))
        .route(console::SESSION, get(console::session))
        .nest(openai::PREFIX, openai::routes())
        .merge(mcp::routes())
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        // The last layer is the first to see a request: nobody unknown learns even which routes there are.
        .layer(middleware::from_fn_with_state(Arc::clone(&app), admit))
        .layer(middleware::from_fn(headers::add))
        .with_state(app)
}

async fn admit(State(app): State<Arc<App>>, mut request: Request, next: Next) -> ApiResult<Response> {
    let access = access(request.uri().path());
    let shown = Shown {
        peer: request.extensions().get::<Peer>(),
        method: request.method(),
        uri: request.uri(),
        headers: request.headers(),
    };
    match app.gate.admit(&shown, access) {
        Ok(Some(principal)) => {
            let trace = request.headers().get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
            request.extensions_mut().insert(Caller::new(principal, Transport::Http).in_trace(trace));
        }
        Ok(None) => {}
        Err(refused) if openai::serves(request.uri().path()) => return Ok(openai::refused(refused)),
        Err(refused) => return Err(ApiError::new(refused)),
    }
    Ok(next.run(request).await)
}

/// Whom a path is for.
fn access(path: &str) -> Access {
    match path {
        paths::HEALTH | paths::READY | console::LOGIN => Access::Open,
        path if path.starts_with("/console/") => Access::Console,
        _ => Access::Known,
    }
}

async fn no_route(uri: Uri) -> ApiError {
    let message = format!("there is no route `{}`", uri.path());
    ApiError::new(
        StableErrorEnvelope::new("route_not_found", ErrorCategory::NotFound, message)
            .hint("routes begin with `/api/v1/`; a newer client may need a newer daemon"),
    )
}

async fn no_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("`{}` does not answer to {method}", uri.path());
    ApiError::new(
        StableErrorEnvelope::new("method_not_allowed", ErrorCategory::Validation, message)
            .hint("use GET to read and POST to change"),
    )
}
