//! Which handler answers where. The addresses are those of `palyra_client::api::paths`, and nothing else is served.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use http::{Method, StatusCode, Uri};
use palyra_client::api::paths;
use palyra_common::{ErrorCategory, StableErrorEnvelope};

use super::error::{ApiError, ApiResult};
use super::extract::MAX_BODY_BYTES;
use super::{approvals, config, daemon, health, journal, run_control, runs, sessions, tape};
use crate::app::App;
use crate::auth::{Access, Peer};

/// The whole API.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route(paths::HEALTH, get(health::show))
        .route(paths::RUNS, get(runs::list).post(runs::create))
        .route(paths::RUN, get(runs::show))
        .route(paths::RUN_TAPE, get(tape::stream))
        .route(paths::RUN_ABORT, post(run_control::abort))
        .route(paths::RUN_PAUSE, post(run_control::pause))
        .route(paths::RUN_RESUME, post(run_control::resume))
        .route(paths::RUN_INPUT, post(run_control::input))
        .route(paths::RUN_UNDO, post(run_control::undo))
        .route(paths::RUN_REPLAY, post(run_control::replay))
        .route(paths::APPROVALS, get(approvals::list))
        .route(paths::APPROVAL, get(approvals::show))
        .route(paths::APPROVAL_DECIDE, post(approvals::decide))
        .route(paths::PATTERNS, get(approvals::patterns))
        .route(paths::PATTERN_REVOKE, post(approvals::revoke))
        .route(paths::RUN_ENVELOPE, post(run_control::envelope))
        .route(paths::SESSIONS, get(sessions::list))
        .route(paths::SESSION, get(sessions::show))
        .route(paths::JOURNAL_TAIL, get(journal::tail))
        .route(paths::JOURNAL_VERIFY, post(journal::verify))
        .route(paths::JOURNAL_PROVE, get(journal::prove))
        .route(paths::JOURNAL_EXPORT, get(journal::export))
        .route(paths::JOURNAL_BACKUP, post(journal::backup))
        .route(paths::CONFIG, get(config::show))
        .route(paths::DAEMON_STOP, post(daemon::stop))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        // The last layer is the first to see a request: nobody unknown learns even which routes there are.
        .layer(middleware::from_fn_with_state(Arc::clone(&app), admit))
        .with_state(app)
}

async fn admit(State(app): State<Arc<App>>, mut request: Request, next: Next) -> ApiResult<Response> {
    let access = if request.uri().path() == paths::HEALTH { Access::Open } else { Access::Known };
    let peer = request.extensions().get::<Peer>().copied();
    if let Some(principal) = app.gate.admit(peer, request.headers(), access).map_err(ApiError::new)? {
        request.extensions_mut().insert(principal);
    }
    Ok(next.run(request).await)
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
    .with_status(StatusCode::METHOD_NOT_ALLOWED)
}
