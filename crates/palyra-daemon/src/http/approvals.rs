//! Questions put to a person, and their answers.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use palyra_agent::ApprovalFilter;
use palyra_client::api::{ApprovalState, DecideApprovalParams, ListApprovalsParams, ListApprovalsResponse, RunView};
use palyra_common::{ApprovalDecision, ApprovalScope};

use super::error::{ApiError, ApiResult};
use super::extract::{JsonBody, Params, parse_id};
use super::runs::view;
use crate::app::App;
use crate::auth::Principal;
use crate::views;

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
    // A wider scope would be recorded and then not honoured; until it is, it is refused.
    if params.scope != ApprovalScope::Once {
        return Err(ApiError::field("scope", "only `once` is supported by this release"));
    }
    let run_id = app.engine.decide_approval(id, params.decision, params.scope, principal.as_str()).await?;
    view(&app, run_id).await
}
