//! `GET /metrics` and `GET /readyz`: for programs that watch the daemon.
//!
//! Ready means that work can begin: a daemon that is stopping, or whose journal takes nothing, says so and says why. Numbers need a credential that may read
//! them, since they tell what happens here.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use palyra_agent::ApprovalFilter;
use palyra_client::api::ReadyResponse;
use palyra_common::{ComponentHealth, HealthStatus};
use palyra_telemetry::{Exposition, Sample};

use super::error::ApiResult;
use super::health;
use crate::app::App;
use crate::dispatch::{self, Beside, Caller};

/// What strangers are told instead of what is wrong, which may name paths and servers.
const UNTOLD: &str = "send a credential for details";

pub(super) async fn ready(State(app): State<Arc<App>>, caller: Option<Extension<Caller>>) -> Response {
    health::look_up(&app).await;
    let mut reasons = health::components(&app);
    if app.closing.is_cancelled() {
        reasons.push(ComponentHealth::new("daemon", HealthStatus::Failing, "it is stopping"));
    }
    reasons.retain(|component| component.status != HealthStatus::Ok);
    if caller.is_none() {
        for reason in &mut reasons {
            *reason = ComponentHealth::new(reason.component.clone(), reason.status, UNTOLD);
        }
    }
    let ready = reasons.iter().all(|component| component.status != HealthStatus::Failing);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, [(CACHE_CONTROL, "no-store")], Json(ReadyResponse { ready, reasons })).into_response()
}

pub(super) async fn metrics(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    dispatch::beside(&app, &caller, Beside::Metrics)?;
    sample(&app).await;
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = Exposition::for_accept(accept);
    let head = [(CONTENT_TYPE, format.content_type()), (CACHE_CONTROL, "no-store")];
    Ok((head, app.metrics.render(format)).into_response())
}

/// Looks up the numbers that are kept elsewhere. One that cannot be read stays what it was.
pub(crate) async fn sample(app: &App) {
    let open = app.engine.approvals(ApprovalFilter { run_id: None, open: Some(true) }).await;
    let place = app.journal.root().join("journal");
    let bytes = tokio::task::spawn_blocking(move || bytes_below(&place)).await;
    app.metrics.sample(Sample {
        runs_active: app.engine.unfinished() as u64,
        approvals_open: open.ok().map(|open| open.len() as u64),
        journal_appends: app.journal.head().count,
        journal_bytes: bytes.ok(),
    });
}

/// Bytes of the files in a directory and in those below it.
fn bytes_below(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
