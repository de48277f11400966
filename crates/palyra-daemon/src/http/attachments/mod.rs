//! `POST /api/v1/attachments/form`: files as browsers and `curl -F` send them. It is `attachment.add` for files of any size that is taken.

mod form;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::{Extension, Json};
use http::header::CONTENT_TYPE;
use palyra_client::api::AddAttachmentsResponse;

use super::error::ApiResult;
use super::extract::{body_too_slow, check_not_encoded};
use crate::app::App;
use crate::dispatch::{self, Arriving, Caller, Result};

pub(crate) use form::Form;

/// How long nothing may arrive.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a form may take.
const WHOLE: Duration = Duration::from_secs(600);

pub(super) async fn add(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult<Json<AddAttachmentsResponse>> {
    check_not_encoded(request.headers())?;
    let (parts, body) = request.into_parts();
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let form = Form::open(content_type, body.into_data_stream())?;
    let reading = dispatch::uploading(&app, &caller, read(&app, &caller, form));
    let read = tokio::time::timeout(WHOLE, reading).await;
    Ok(Json(read.unwrap_or_else(|_| Err(body_too_slow(WHOLE).into()))?))
}

async fn read(app: &Arc<App>, caller: &Caller, mut form: Form) -> Result<AddAttachmentsResponse> {
    let mut stored = AddAttachmentsResponse::default();
    while let Some(mut file) = in_time(form.next()).await? {
        let mut arriving = Arriving::begin(app, &file.name).await?;
        while let Some(piece) = in_time(file.piece()).await? {
            arriving = arriving.write(piece).await?;
        }
        let (shared, owner) = (Arc::clone(app), caller.clone());
        let kept = dispatch::to_the_end(app, async move { arriving.keep(&shared, &owner).await });
        stored.attachments.push(kept.await?);
    }
    Ok(stored)
}

async fn in_time<T>(arriving: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(SILENCE, arriving).await.unwrap_or_else(|_| Err(body_too_slow(SILENCE).into()))
}
