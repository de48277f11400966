//! The configuration that the daemon runs with, every value with its source.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use palyra_client::api::{ConfigEntryView, ConfigResponse};

use super::error::{ApiError, ApiResult};
use crate::app::App;

pub(super) async fn show(State(app): State<Arc<App>>) -> ApiResult<Json<ConfigResponse>> {
    let mut entries = Vec::new();
    for entry in app.config.list() {
        let value = serde_json::to_value(&entry.value).map_err(|error| ApiError::internal(error.to_string()))?;
        entries.push(ConfigEntryView { key: entry.key.to_owned(), value, source: entry.source.to_string() });
    }
    entries.sort_by(|left, right| left.key.cmp(&right.key));
    Ok(Json(ConfigResponse { file: app.config.file().map(|path| path.display().to_string()), entries }))
}
