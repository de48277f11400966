//! Runs: creating, listing and looking at them.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use palyra_agent::{NewRun, RunFilter, RunRow};
use palyra_client::api::{CreateRunParams, ListRunsParams, ListRunsResponse, RunDetail, RunView};
use palyra_common::RunId;

use super::error::{ApiError, ApiResult};
use super::extract::{JsonBody, Params, parse_id};
use crate::app::App;
use crate::auth::Principal;
use crate::views;

/// Entries of a page when nobody says how many.
const DEFAULT_PAGE: u32 = 50;
/// Most entries of a page.
pub(super) const MAX_PAGE: u32 = 500;
/// Longest key that a caller may choose; keys are indexed and shown in lists.
const MAX_KEY_CHARS: usize = 200;

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    JsonBody(params): JsonBody<CreateRunParams>,
) -> ApiResult<Json<RunView>> {
    let new = NewRun { owner: Some(principal.as_str().to_owned()), ..new_run(params)? };
    app.outside.refresh().await;
    let row = app.engine.create_run(new).await?;
    let last_seq = app.engine.last_seq(row.run_id).await?;
    Ok(Json(views::run(row, last_seq)))
}

/// Checks what the engine takes on trust.
fn new_run(params: CreateRunParams) -> ApiResult<NewRun> {
    if params.session_id.is_some() && params.session_key.is_some() {
        return Err(ApiError::field("session_key", "give either `session_id` or `session_key`"));
    }
    for (field, key) in [("session_key", &params.session_key), ("idempotency_key", &params.idempotency_key)] {
        if let Some(key) = key {
            check_key(field, key)?;
        }
    }
    if params.model.as_ref().is_some_and(|model| model.trim().is_empty()) {
        return Err(ApiError::field("model", "it is empty; leave it out for the configured model"));
    }
    // The daemon's own current directory means nothing to the caller.
    if !FilePath::new(&params.workspace).is_absolute() {
        return Err(ApiError::field("workspace", format!("`{}` is not an absolute path", params.workspace)));
    }
    let limits = params.limits.unwrap_or_default();
    let zero = [
        ("limits.max_turns", limits.max_turns == Some(0)),
        ("limits.max_tool_calls", limits.max_tool_calls == Some(0)),
        ("limits.wall_clock_seconds", limits.wall_clock_seconds == Some(0)),
    ];
    if let Some((field, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
        return Err(ApiError::field(field, "it must be at least 1"));
    }
    Ok(NewRun {
        prompt: params.prompt,
        workspace: params.workspace,
        session_id: params.session_id,
        session_key: params.session_key,
        model: params.model,
        mode: params.mode,
        owner: None,
        max_turns: limits.max_turns,
        max_tool_calls: limits.max_tool_calls,
        wall_clock_ms: limits.wall_clock_seconds.map(|seconds| seconds.saturating_mul(1000)),
        idempotency_key: params.idempotency_key,
    })
}

fn check_key(field: &str, key: &str) -> ApiResult<()> {
    let fits = !key.trim().is_empty() && key.chars().count() <= MAX_KEY_CHARS && !key.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    Err(ApiError::field(field, format!("it must have 1 to {MAX_KEY_CHARS} characters and no control characters")))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Params(params): Params<ListRunsParams>,
) -> ApiResult<Json<ListRunsResponse>> {
    let limit = page_size(params.limit)?;
    // One more than asked for tells whether there is a next page.
    let filter =
        RunFilter { session_id: params.session_id, phase: params.phase, before: params.before, limit: limit + 1 };
    let mut rows = app.engine.runs(filter).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_before = if more { rows.last().map(|row| row.run_id) } else { None };
    Ok(Json(ListRunsResponse { runs: views_of(&app, rows).await?, next_before }))
}

pub(super) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> ApiResult<Json<RunDetail>> {
    let details = app.engine.run_details(parse_id("run_id", &id)?).await?;
    Ok(Json(views::run_detail(details)))
}

/// The run as it stands now, for answers to requests that changed it.
pub(super) async fn view(app: &App, run_id: RunId) -> ApiResult<Json<RunView>> {
    let row = app.engine.run(run_id).await?;
    let last_seq = app.engine.last_seq(run_id).await?;
    Ok(Json(views::run(row, last_seq)))
}

/// Rows with their newest positions, which one read of the journal gives for all.
pub(super) async fn views_of(app: &App, rows: Vec<RunRow>) -> ApiResult<Vec<RunView>> {
    let views = app.journal.read(move |reader| {
        rows.into_iter()
            .map(|row| {
                let last_seq = reader.last_run_seq(row.run_id)?;
                Ok(views::run(row, last_seq))
            })
            .collect::<Result<Vec<_>, _>>()
    });
    Ok(views.await?)
}

/// How many entries a page has.
pub(super) fn page_size(asked: Option<u32>) -> ApiResult<u32> {
    match asked {
        None => Ok(DEFAULT_PAGE),
        Some(0) => Err(ApiError::field("limit", "it must be at least 1")),
        Some(limit) => Ok(limit.min(MAX_PAGE)),
    }
}
