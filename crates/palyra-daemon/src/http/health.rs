//! `GET /healthz`: what each part says about itself; to strangers only whether the daemon is well, and its version.
//!
//! Whoever watches the daemon may ask often, so a report is written once and told again for a moment, unless something happened meanwhile.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use palyra_agent::QuarantinedUsage;
use palyra_client::api::{BriefHealthResponse, HealthResponse};
use palyra_common::{BuildInfo, ComponentHealth, HealthReport, HealthStatus, ToStableError as _};

use super::error::ApiError;
use super::headers;
use crate::app::App;
use crate::dispatch::Caller;
use crate::policy_watch;

/// How long a report is told again. Only what is slow to look at, such as how full the disk is, is told so late.
const MOMENT: Duration = Duration::from_millis(100);

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Somebody with a credential.
    Known,
    Stranger,
}

/// Looks up what is not known without reading the journal.
pub(super) async fn look_up(app: &App) {
    if let Err(error) = app.journal.check_reads().await {
        tracing::warn!(%error, "the journal cannot be read");
    }
    app.engine.refresh_quarantined_usage().await;
}

/// The whole answer, with the headers that every answer carries.
pub(super) async fn show(app: &App, reader: Reader) -> Response {
    let recent = match reader {
        Reader::Known => &app.recent_health,
        Reader::Stranger => &app.recent_brief_health,
    };
    let (now, happened) = (Instant::now(), Happened::so_far(app));
    let body = match recent.still(now, happened) {
        Some(body) => body,
        None => {
            // Boxed, since a connection has room set aside for all that is not.
            Box::pin(look_up(app)).await;
            match recent.get(now, happened, || written(app, reader)) {
                Ok(body) => body,
                Err(error) => return unwritable(&error),
            }
        }
    };
    let mut response = Response::new(Body::from(body));
    response.headers_mut().clone_from(&HEADERS);
    response
}

/// `HEAD`, which asks for the same and takes no body.
pub(super) async fn head(State(app): State<Arc<App>>, caller: Option<Extension<Caller>>) -> Response {
    show(&app, if caller.is_some() { Reader::Known } else { Reader::Stranger }).await
}

fn unwritable(error: &serde_json::Error) -> Response {
    let mut response = ApiError::internal(format!("the report cannot be written: {error}")).into_response();
    headers::add(response.headers_mut());
    response
}

static HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers::add(&mut headers);
    headers
});

fn written(app: &App, reader: Reader) -> serde_json::Result<Bytes> {
    let report = report(app);
    let written = match reader {
        Reader::Known => serde_json::to_vec(&report),
        Reader::Stranger => {
            let HealthResponse { status, version, .. } = report;
            serde_json::to_vec(&BriefHealthResponse { status, version })
        }
    };
    written.map(Bytes::from)
}

/// What is quick to look at; a report is not told again once any of it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Happened {
    records: u64,
    unfinished: usize,
    policies_failed: bool,
    reads_failed: bool,
}

impl Happened {
    fn so_far(app: &App) -> Self {
        Self {
            records: app.journal.head().count,
            unfinished: app.engine.unfinished(),
            policies_failed: app.policies.last_error().is_some(),
            reads_failed: app.journal.failed_read().is_some(),
        }
    }
}

/// The last report as it was written.
#[derive(Debug, Default)]
pub(crate) struct RecentHealth(Mutex<Option<Told>>);

#[derive(Debug)]
struct Told {
    at: Instant,
    happened: Happened,
    body: Bytes,
}

impl RecentHealth {
    /// The last report, if it is still good.
    fn still(&self, now: Instant, happened: Happened) -> Option<Bytes> {
        self.lock().as_ref().filter(|told| told.is_good(now, happened)).map(|told| told.body.clone())
    }

    /// The last report, or a new one.
    fn get<E>(&self, now: Instant, happened: Happened, write: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        let mut last = self.lock();
        if let Some(told) = &*last
            && told.is_good(now, happened)
        {
            return Ok(told.body.clone());
        }
        let body = write()?;
        *last = Some(Told { at: now, happened, body: body.clone() });
        Ok(body)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Told>> {
        // The report is replaced in one assignment, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn is_good(&self, now: Instant, happened: Happened) -> bool {
        self.happened == happened && now.saturating_duration_since(self.at) < MOMENT
    }
}

/// What each part says about itself, for every interface that tells it.
pub(crate) fn report(app: &App) -> HealthResponse {
    let HealthReport { status, components } = HealthReport::of(components(app));
    HealthResponse {
        status,
        version: BuildInfo::current().version.to_owned(),
        pid: std::process::id(),
        state_root: app.state_root.display().to_string(),
        provider: app.models.view(),
        uptime_ms: u64::try_from(app.ready_since.elapsed().as_millis()).unwrap_or(u64::MAX),
        components,
    }
}

/// What each part says about itself.
pub(super) fn components(app: &App) -> Vec<ComponentHealth> {
    let mut all = vec![
        journal(app),
        app.http_health.clone(),
        app.models.health(),
        policy_watch::health(&app.policies),
        runs(app),
        app.grpc_health.clone(),
        app.quic_health.get(),
    ];
    all.extend(app.prices.health());
    all.extend(app.budgets.health());
    all.extend(app.engine.spending().quarantined().map(usage));
    all
}

/// What is wrong with the books of usage.
fn usage(found: QuarantinedUsage) -> ComponentHealth {
    let QuarantinedUsage { records, first_seq, reason } = found;
    let summary = format!(
        "records that could not be booked and were set aside: {records}; the first is record {first_seq}: {reason}"
    );
    let hint = "usage reports and budgets leave these calls out or count what was reserved for them; everything else is counted";
    ComponentHealth::new("usage", HealthStatus::Degraded, summary).hint(hint)
}

fn journal(app: &App) -> ComponentHealth {
    let head = app.journal.head();
    let works = app.journal.failed_read().map_or(Ok(()), Err).and_then(|()| app.journal.admission());
    match works {
        Ok(()) => match app.journal.warnings().into_iter().next() {
            None => ComponentHealth::new("journal", HealthStatus::Ok, format!("{} records", head.count)),
            Some(warning) => {
                ComponentHealth::new("journal", HealthStatus::Degraded, warning.message).hint(warning.hint)
            }
        },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_told_again_for_a_moment_unless_something_happened() {
        let recent = RecentHealth::default();
        let start = Instant::now();
        let quiet = Happened { records: 7, unfinished: 0, policies_failed: false, reads_failed: false };
        let get = |after, happened, text: &'static str| {
            recent.get(start + after, happened, || Ok::<_, ()>(Bytes::from_static(text.as_bytes()))).unwrap()
        };
        assert_eq!(get(Duration::ZERO, quiet, "first"), "first");
        assert_eq!(get(MOMENT / 2, quiet, "second"), "first");
        assert_eq!(get(MOMENT, quiet, "third"), "third");
        let busy = Happened { unfinished: 1, ..quiet };
        for (happened, text) in [
            (busy, "a run began"),
            (quiet, "it ended"),
            (Happened { records: 8, ..quiet }, "a record came"),
            (Happened { policies_failed: true, ..quiet }, "the policies do not load"),
            (Happened { reads_failed: true, ..quiet }, "the journal cannot be read"),
        ] {
            assert_eq!(get(MOMENT, happened, text), text);
        }
        assert_eq!(recent.get(start + 3 * MOMENT, quiet, || Err("broken")), Err("broken"));
    }

    #[test]
    fn records_that_could_not_be_booked_are_named() {
        let found =
            QuarantinedUsage { records: 2, first_seq: 7, reason: "`embeddings.used` makes no sense".to_owned() };
        let health = usage(found);
        assert_eq!((health.component.as_str(), health.status), ("usage", HealthStatus::Degraded));
        assert!(
            health.summary.contains("2; the first is record 7: `embeddings.used` makes no sense"),
            "{}",
            health.summary
        );
    }
}
