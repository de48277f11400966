//! The journal over HTTP: tail, export, prove, verify, backup.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use bytes::Bytes;
use palyra_client::api::{
    BackupJournalParams, BackupJournalResponse, ExportJournalParams, TailJournalParams, VerifyLine, VerifyProgress,
};
use palyra_journal::{InclusionProof, Journal, VerifyOptions};
use tokio::sync::mpsc;

use super::error::{ApiError, ApiResult};
use super::extract::{JsonBody, NoParams, Params, parse_id};
use super::ndjson::{self, Pages};
use crate::app::App;
use crate::views;

/// Records that are read at once; a record may hold megabytes, so few.
const PAGE: u64 = 64;
/// Records that a tail shows when nobody says how many.
const DEFAULT_TAIL: u64 = 20;
/// How often a followed journal is looked at. Looking costs one read of a number in memory.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Progress lines that wait for a slow reader; more are dropped, the next one says more anyway.
const PROGRESS_LINES: usize = 16;

pub(super) async fn tail(
    State(app): State<Arc<App>>,
    Params(params): Params<TailJournalParams>,
) -> ApiResult<Response> {
    let count = app.journal.head().count;
    let next = match (params.n, params.from_seq) {
        (Some(_), Some(_)) => return Err(ApiError::field("from_seq", "give either `n` or `from_seq`")),
        (n, None) => (count + 1).saturating_sub(n.unwrap_or(DEFAULT_TAIL)).max(1),
        (None, Some(from_seq)) => from_seq.max(1),
    };
    let last = if params.follow.unwrap_or(false) { None } else { Some(count) };
    Ok(ndjson::respond(Records { journal: app.journal.clone(), next, last }, app.closing.clone()))
}

pub(super) async fn export(State(app): State<Arc<App>>, Params(params): Params<ExportJournalParams>) -> Response {
    let last = Some(app.journal.head().count);
    let next = params.from_seq.unwrap_or(1).max(1);
    ndjson::respond(Records { journal: app.journal.clone(), next, last }, app.closing.clone())
}

/// Records from a position to another one, or for ever.
struct Records {
    journal: Journal,
    next: u64,
    last: Option<u64>,
}

impl Pages for Records {
    async fn next(&mut self) -> ApiResult<Option<Bytes>> {
        loop {
            let end = self.last.unwrap_or_else(|| self.journal.head().count);
            if self.next > end {
                if self.last.is_some() {
                    return Ok(None);
                }
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            }
            let (from, limit) = (self.next, (end - self.next + 1).min(PAGE));
            let records = self.journal.read(move |reader| reader.range(from, limit as usize)).await?;
            let Some(newest) = records.last().map(|record| record.seq) else {
                return Err(ApiError::internal(format!("record {from} is there and cannot be read")));
            };
            self.next = newest + 1;
            let views: Result<Vec<_>, _> = records.into_iter().map(views::record).collect();
            let views = views.map_err(|error| ApiError::internal(format!("a payload is not JSON: {error}")))?;
            return ndjson::lines(views).map(Some);
        }
    }
}

pub(super) async fn prove(State(app): State<Arc<App>>, Path(seq): Path<String>) -> ApiResult<Json<InclusionProof>> {
    let seq = parse_id("seq", &seq)?;
    Ok(Json(app.journal.prove(seq).await?))
}

/// Verifies beside the running writer, on a thread of its own. A client that goes away does not stop it; it only reads.
pub(super) async fn verify(
    State(app): State<Arc<App>>,
    JsonBody(NoParams {}): JsonBody<NoParams>,
) -> ApiResult<Response> {
    let (lines, received) = mpsc::channel::<ApiResult<VerifyLine>>(PROGRESS_LINES);
    let progress = lines.clone();
    let options = VerifyOptions {
        progress: Some(Arc::new(move |at: palyra_journal::VerifyProgress| {
            let _ = progress.try_send(Ok(VerifyLine::Progress(VerifyProgress { done: at.records, total: at.total })));
        })),
        projections: palyra_agent::projections(),
        ..VerifyOptions::default()
    };
    let root = app.state_root.clone();
    tokio::task::spawn_blocking(move || {
        let report = palyra_journal::verify(&root, options);
        let line = report.map(|report| VerifyLine::Report(views::verified(report))).map_err(ApiError::from);
        // Nobody may be listening any more.
        let _ = lines.blocking_send(line);
    });
    Ok(ndjson::respond(Verification { received, reported: false }, app.closing.clone()))
}

/// The lines of a verification.
struct Verification {
    received: mpsc::Receiver<ApiResult<VerifyLine>>,
    reported: bool,
}

impl Pages for Verification {
    async fn next(&mut self) -> ApiResult<Option<Bytes>> {
        if self.reported {
            return Ok(None);
        }
        let line = match self.received.recv().await {
            Some(line) => line?,
            None => return Err(ApiError::internal("the verification ended without a report")),
        };
        self.reported = matches!(line, VerifyLine::Report(_));
        ndjson::lines([line]).map(Some)
    }
}

pub(super) async fn backup(
    State(app): State<Arc<App>>,
    JsonBody(params): JsonBody<BackupJournalParams>,
) -> ApiResult<Json<BackupJournalResponse>> {
    let dest = PathBuf::from(&params.dest);
    if !dest.is_absolute() {
        return Err(ApiError::field("dest", format!("`{}` is not an absolute path", params.dest)));
    }
    let report = app.journal.backup(dest).await?;
    Ok(Json(BackupJournalResponse {
        dest: report.path.display().to_string(),
        records: report.records,
        segments: report.segments,
        artifacts: report.artifacts,
        bytes: report.bytes,
    }))
}
