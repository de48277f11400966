//! The description of the API, made once and served as bytes.

use std::sync::LazyLock;

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;

pub(super) const PATH: &str = "/openapi.json";

static DOCUMENT: LazyLock<Bytes> =
    LazyLock::new(|| serde_json::to_vec(&palyra_client::openapi::document()).unwrap_or_default().into());

pub(super) async fn show() -> Response {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.clone()).into_response()
}
