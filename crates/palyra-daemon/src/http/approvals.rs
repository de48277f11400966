//! Questions put to a person, and their answers.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use palyra_agent::{AgentError, Answer, ApprovalFilter, PatternFilter};
use palyra_client::api::{
    ApprovalState, ApprovalView, DecideApprovalParams, ListApprovalsParams, ListApprovalsResponse, ListPatternsParams,
    ListPatternsResponse, RunView,
};
use palyra_common::{ApprovalDecision, ApprovalScope, Clock as _, SystemClock, Timestamp};

use super::error::{ApiError, ApiResult};
use super::extract::{JsonBody, Params, parse_id};
use super::runs::view;
use crate::app::App;
use crate::auth::Principal;
use crate::views;

/// How long a timeboxed answer holds when nobody says how long.
const DEFAULT_MINUTES: u32 = 60;
/// A day: whoever wants more writes a policy.
const MAX_MINUTES: u32 = 24 * 60;

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Params(params): Params<ListApprovalsParams>,
) -> ApiResult<Json<ListApprovalsResponse>> {
    let open = match params.state.unwrap_or(ApprovalState::Pending) {
        ApprovalState::Pending => Some(true),
        ApprovalState::Decided => Some(false),
        ApprovalState::All => None,
    };
    let rows = app.engine.approvals(ApprovalFilter { run_id: params.run_id, open }).await?;
    Ok(Json(ListApprovalsResponse { approvals: rows.into_iter().map(views::approval).collect() }))
}

pub(super) async fn decide(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    JsonBody(params): JsonBody<DecideApprovalParams>,
) -> ApiResult<Json<RunView>> {
    let id = parse_id("approval_id", &id)?;
    match params.decision {
        ApprovalDecision::Allow | ApprovalDecision::Deny => {}
        ApprovalDecision::Timeout | ApprovalDecision::Error => {
            return Err(ApiError::field("decision", "a person answers `allow` or `deny`"));
        }
    }
    let until = match (params.scope, params.minutes) {
        (ApprovalScope::Timeboxed, minutes) => Some(end_of(minutes.unwrap_or(DEFAULT_MINUTES))?),
        (ApprovalScope::Once | ApprovalScope::Session, None) => None,
        (_, Some(_)) => return Err(ApiError::field("minutes", "it goes with the scope `timeboxed`")),
    };
    let answer = Answer {
        decision: params.decision,
        scope: params.scope,
        until,
        by: principal.as_str().to_owned(),
        via: Some(principal.via().to_owned()),
    };
    let run_id = app.engine.decide_approval(id, answer).await?;
    view(&app, run_id).await
}

/// When a timebox of so many minutes ends.
fn end_of(minutes: u32) -> ApiResult<Timestamp> {
    if minutes == 0 || minutes > MAX_MINUTES {
        return Err(ApiError::field("minutes", format!("it must be 1 to {MAX_MINUTES}")));
    }
    Ok(SystemClock.now().plus(Duration::from_secs(u64::from(minutes) * 60)))
}

pub(super) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> ApiResult<Json<ApprovalView>> {
    let id = parse_id("approval_id", &id)?;
    let row = app.engine.approval(id).await?.ok_or_else(|| AgentError::ApprovalNotFound(id.to_string()))?;
    Ok(Json(views::approval(row)))
}

pub(super) async fn patterns(
    State(app): State<Arc<App>>,
    Params(params): Params<ListPatternsParams>,
) -> ApiResult<Json<ListPatternsResponse>> {
    let which = if params.all == Some(true) { PatternFilter::All } else { PatternFilter::Counting };
    let rows = app.engine.patterns(which).await?;
    Ok(Json(ListPatternsResponse { patterns: rows.into_iter().map(views::pattern).collect() }))
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> ApiResult<Json<ListPatternsResponse>> {
    app.engine.revoke_pattern(parse_id("approval_id", &id)?, principal.as_str()).await?;
    let rows = app.engine.patterns(PatternFilter::Counting).await?;
    Ok(Json(ListPatternsResponse { patterns: rows.into_iter().map(views::pattern).collect() }))
}
