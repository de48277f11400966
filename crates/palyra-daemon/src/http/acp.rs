//! One envelope, one answer. A refusal is an answer too, so the status says only whether there was an envelope at all.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use palyra_client::command::read_envelope;
use palyra_common::AcpCommandResultEnvelope;

use super::error::ApiResult;
use super::extract::Body;
use crate::app::App;
use crate::dispatch::{self, Caller, Refusal};

pub(super) async fn command(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Body(body): Body,
) -> ApiResult<Json<AcpCommandResultEnvelope>> {
    let envelope = read_envelope(&body).map_err(Refusal::from)?;
    Ok(Json(dispatch::envelope(&app, &caller, envelope).await))
}
