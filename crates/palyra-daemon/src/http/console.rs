//! Logging people in: a token for a cookie that no script can read, and a proof that has to go with every change.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use palyra_client::api::{ConsoleLoginParams, ConsoleSessionResponse};
use palyra_identity::{clear_cookie, set_cookie};

use super::error::{ApiError, ApiResult};
use super::extract::Body;
use crate::app::App;
use crate::auth::Peer;
use crate::dispatch::Caller;

pub(super) const LOGIN: &str = "/console/v1/login";
pub(super) const LOGOUT: &str = "/console/v1/logout";
pub(super) const SESSION: &str = "/console/v1/session";

/// Largest body of a log-in: a token. Strangers send it, so it is not read to the limit of commands.
pub(super) const MAX_LOGIN_BYTES: usize = 4 * 1024;

/// Takes a token and gives the cookie.
pub(super) async fn log_in(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Body(body): Body,
) -> ApiResult<Response> {
    let params: ConsoleLoginParams =
        serde_json::from_slice(&body).map_err(|error| ApiError::field("token", error.to_string()))?;
    let opened = app.gate.log_in(&params.token, &peer).map_err(ApiError::new)?;
    let cookie = set_cookie(peer.cookie_transport(), opened.cookie.expose(), opened.max_age);
    let body = ConsoleSessionResponse { csrf: opened.csrf, principal: None };
    Ok(([(SET_COOKIE, cookie)], Json(body)).into_response())
}

/// Ends the session of the cookie.
pub(super) async fn log_out(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    app.gate.log_out(&peer, &headers);
    (StatusCode::NO_CONTENT, [(SET_COOKIE, clear_cookie(peer.cookie_transport()))]).into_response()
}

/// Who is logged in, and the proof for changes.
pub(super) async fn session(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> ApiResult<Json<ConsoleSessionResponse>> {
    let csrf = app.gate.csrf_token(&peer, &headers).map_err(ApiError::new)?;
    Ok(Json(ConsoleSessionResponse { csrf, principal: Some(caller.view()) }))
}
