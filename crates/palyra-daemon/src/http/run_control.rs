//! What can be done to a run: abort, pause, resume, steer, undo, replay.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use palyra_client::api::{
    AbortRunParams, EditEnvelopeParams, ReplayReport, RunDetail, RunInputParams, RunView, UndoResponse,
};
use palyra_common::RunId;

use super::error::ApiResult;
use super::extract::{JsonBody, NoParams, parse_id};
use super::runs::view;
use crate::app::App;
use crate::auth::Principal;
use crate::views;

fn run_id(text: &str) -> ApiResult<RunId> {
    parse_id("run_id", text)
}

pub(super) async fn abort(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    JsonBody(params): JsonBody<AbortRunParams>,
) -> ApiResult<Json<RunView>> {
    let id = run_id(&id)?;
    app.engine.cancel(id, principal.as_str(), params.reason).await?;
    view(&app, id).await
}

pub(super) async fn pause(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    JsonBody(NoParams {}): JsonBody<NoParams>,
) -> ApiResult<Json<RunView>> {
    let id = run_id(&id)?;
    app.engine.pause(id, principal.as_str()).await?;
    view(&app, id).await
}

pub(super) async fn resume(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    JsonBody(NoParams {}): JsonBody<NoParams>,
) -> ApiResult<Json<RunView>> {
    let id = run_id(&id)?;
    app.engine.resume(id, principal.as_str()).await?;
    view(&app, id).await
}

pub(super) async fn input(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    JsonBody(params): JsonBody<RunInputParams>,
) -> ApiResult<Json<RunView>> {
    let id = run_id(&id)?;
    app.engine.steer(id, params.text, params.mode).await?;
    view(&app, id).await
}

pub(super) async fn envelope(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    JsonBody(params): JsonBody<EditEnvelopeParams>,
) -> ApiResult<Json<RunDetail>> {
    let id = run_id(&id)?;
    let add = params.add.into_iter().map(views::intent).collect();
    app.engine.edit_envelope(id, principal.as_str(), add, params.remove).await?;
    Ok(Json(views::run_detail(app.engine.run_details(id).await?)))
}

pub(super) async fn undo(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    JsonBody(NoParams {}): JsonBody<NoParams>,
) -> ApiResult<Json<UndoResponse>> {
    let undone = app.engine.undo(run_id(&id)?, principal.as_str()).await?;
    Ok(Json(views::undone(undone)))
}

pub(super) async fn replay(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    JsonBody(NoParams {}): JsonBody<NoParams>,
) -> ApiResult<Json<ReplayReport>> {
    let replayed = app.engine.replay(run_id(&id)?).await?;
    Ok(Json(views::replayed(replayed)))
}
