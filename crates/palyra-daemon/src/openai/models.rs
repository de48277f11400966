//! Which models there are, and which one a request means.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use palyra_common::{BuildInfo, ErrorCategory, FieldError, StableErrorEnvelope};
use serde_json::{Value, json};

use super::error::OpenAiResult;
use super::user_of_models;
use crate::app::App;
use crate::dispatch::{self, Beside, Caller};

/// The configured model, whatever it is called.
const CONFIGURED: &str = "palyra";
/// Providers that know no more models than the configured one.
const KNOW_NO_OTHERS: [&str; 2] = ["offline", "scripted"];

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> OpenAiResult<Json<Value>> {
    let caller = user_of_models(&app, &caller)?;
    dispatch::beside(&app, &caller, Beside::OpenAiModels)?;
    let models: Vec<Value> = names(&app).iter().map(|name| document(name)).collect();
    Ok(Json(json!({ "object": "list", "data": models })))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    model: Result<Path<String>, PathRejection>,
) -> OpenAiResult<Json<Value>> {
    let caller = user_of_models(&app, &caller)?;
    dispatch::beside(&app, &caller, Beside::OpenAiModels)?;
    let Ok(Path(model)) = model else { return Err(unknown("(not a text)").into()) };
    match names(&app).contains(&model) {
        true => Ok(Json(document(&model))),
        false => Err(unknown(&model).into()),
    }
}

/// The model to ask the provider for; `None` is the configured one.
pub(super) fn choose(app: &App, name: &str) -> dispatch::Result<Option<String>> {
    if names(app).iter().any(|known| known == name) {
        return Ok(None);
    }
    if !KNOW_NO_OTHERS.contains(&app.models.view().name.as_str()) && !name.trim().is_empty() {
        return Ok(Some(name.to_owned()));
    }
    Err(unknown(name).into())
}

fn names(app: &App) -> Vec<String> {
    // The provider finds out late which model it has if nobody named one.
    let found = app.models.view().model;
    let mut names = vec![CONFIGURED.to_owned()];
    if !found.is_empty() && found != CONFIGURED {
        names.push(found);
    }
    names
}

fn document(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": 0, "owned_by": format!("palyra {}", BuildInfo::current().version) })
}

fn unknown(name: &str) -> StableErrorEnvelope {
    let shown: String = name.chars().take(100).collect();
    let message = format!("there is no model `{shown}`");
    let mut envelope = StableErrorEnvelope::new("model_not_found", ErrorCategory::NotFound, message.clone())
        .hint("`GET /v1/models` lists them; `palyra` is always the configured one");
    envelope.validation_errors.push(FieldError { field: "model".to_owned(), code: "unknown".to_owned(), message });
    envelope
}
