//! Stopping the daemon on request. This answer is still delivered: closing waits for answers under way.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use palyra_client::api::StopDaemonResponse;

use super::extract::{JsonBody, NoParams};
use crate::app::App;
use crate::auth::Principal;

pub(super) async fn stop(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    JsonBody(NoParams {}): JsonBody<NoParams>,
) -> Json<StopDaemonResponse> {
    let unfinished_runs = app.engine.unfinished() as u64;
    tracing::info!(by = principal.as_str(), unfinished_runs, "stopping on request");
    app.closing.cancel();
    Json(StopDaemonResponse { pid: std::process::id(), unfinished_runs })
}
