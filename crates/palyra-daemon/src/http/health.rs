//! `GET /healthz`: what each part says about itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use palyra_client::api::HealthResponse;
use palyra_common::{BuildInfo, ComponentHealth, HealthReport, HealthStatus, ToStableError as _};

use crate::app::App;
use crate::policy_watch;

pub(super) async fn show(State(app): State<Arc<App>>) -> Json<HealthResponse> {
    Json(report(&app))
}

/// What each part says about itself, for every interface that tells it.
pub(crate) fn report(app: &App) -> HealthResponse {
    let HealthReport { status, components } = HealthReport::of(components(app));
    HealthResponse {
        status,
        version: BuildInfo::current().version.to_owned(),
        pid: std::process::id(),
        state_root: app.state_root.display().to_string(),
        provider: app.provider.clone(),
        uptime_ms: u64::try_from(app.ready_since.elapsed().as_millis()).unwrap_or(u64::MAX),
        components,
    }
}

/// What each part says about itself.
pub(super) fn components(app: &App) -> Vec<ComponentHealth> {
    vec![
        journal(app),
        app.http_health.clone(),
        app.provider_health.clone(),
        policy_watch::health(&app.policies),
        runs(app),
        app.grpc_health.clone(),
        app.quic_health.get(),
    ]
}

fn journal(app: &App) -> ComponentHealth {
    let head = app.journal.head();
    match app.journal.admission() {
        Ok(()) => ComponentHealth::new("journal", HealthStatus::Ok, format!("{} records", head.count)),
        Err(error) => {
            let envelope = error.to_stable();
            let health = ComponentHealth::new("journal", HealthStatus::Failing, envelope.message);
            match envelope.recovery_hint {
                Some(hint) => health.hint(hint),
                None => health,
            }
        }
    }
}

fn runs(app: &App) -> ComponentHealth {
    ComponentHealth::new("runs", HealthStatus::Ok, format!("{} unfinished", app.engine.unfinished()))
}
