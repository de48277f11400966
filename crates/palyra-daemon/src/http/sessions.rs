//! Sessions and the runs in them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use palyra_agent::RunFilter;
use palyra_client::api::{ListSessionsParams, ListSessionsResponse, SessionDetail};

use super::error::ApiResult;
use super::extract::{Params, parse_id};
use super::runs::{MAX_PAGE, page_size, views_of};
use crate::app::App;
use crate::views;

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Params(params): Params<ListSessionsParams>,
) -> ApiResult<Json<ListSessionsResponse>> {
    let limit = page_size(params.limit)?;
    // One more than asked for tells whether there is a next page.
    let mut rows = app.engine.sessions(params.before, limit + 1).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_before = if more { rows.last().map(|row| row.session_id) } else { None };
    Ok(Json(ListSessionsResponse { sessions: rows.into_iter().map(views::session).collect(), next_before }))
}

pub(super) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> ApiResult<Json<SessionDetail>> {
    let session_id = parse_id("session_id", &id)?;
    let session = views::session(app.engine.session(session_id).await?);
    let mut runs = Vec::new();
    let mut before = None;
    loop {
        let filter = RunFilter { session_id: Some(session_id), before, limit: MAX_PAGE, ..RunFilter::default() };
        let rows = app.engine.runs(filter).await?;
        let whole = rows.len() == MAX_PAGE as usize;
        before = rows.last().map(|row| row.run_id);
        runs.extend(views_of(&app, rows).await?);
        if !whole {
            break;
        }
    }
    runs.reverse();
    Ok(Json(SessionDetail { session, runs }))
}
