//! Reading requests: JSON bodies, query strings, ids in paths. Whatever is wrong is named by field.

use std::str::FromStr;

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use palyra_common::{ErrorCategory, StableErrorEnvelope};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::{ApiError, ApiResult};

/// Largest body that is read. A task with everything a person may paste into it stays below; a larger one only eats memory.
pub(super) const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// A JSON body; an empty one counts as `{}`.
pub(super) struct JsonBody<T>(pub(super) T);

/// The body of a request that takes no parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParams {}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> ApiResult<Self> {
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => too_large(),
            status => ApiError::field("body", rejection.body_text()).with_status(status),
        })?;
        parse_body(if bytes.is_empty() { b"{}" } else { &bytes }).map(Self)
    }
}

fn too_large() -> ApiError {
    let message = format!("the body is larger than {} MiB", MAX_BODY_BYTES / (1024 * 1024));
    ApiError::new(
        StableErrorEnvelope::new("body_too_large", ErrorCategory::Validation, message)
            .hint("put long material into a file of the workspace and refer to it with `@file:`"),
    )
    .with_status(StatusCode::PAYLOAD_TOO_LARGE)
}

fn parse_body<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        let message = inner.to_string();
        if inner.is_data() {
            ApiError::field(&field_of(&path, &message), message)
        } else {
            ApiError::field("body", message).with_status(StatusCode::BAD_REQUEST)
        }
    })?;
    deserializer
        .end()
        .map_err(|error| ApiError::field("body", error.to_string()).with_status(StatusCode::BAD_REQUEST))?;
    Ok(value)
}

/// The field that a message of serde is about. The path leads to the record; an unknown or missing field of it is named in
/// the message alone.
fn field_of(path: &str, message: &str) -> String {
    let named = ["unknown field `", "missing field `"]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix))
        .and_then(|rest| rest.split_once('`'))
        .map(|(name, _)| name);
    match (path, named) {
        ("." | "", None) => "body".to_owned(),
        ("." | "", Some(name)) => name.to_owned(),
        (path, Some(name)) if !path.ends_with(name) => format!("{path}.{name}"),
        (path, _) => path.to_owned(),
    }
}

/// The query string.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        Query::try_from_uri(&parts.uri).map(|Query(params)| Self(params)).map_err(|rejection| {
            let text = rejection.body_text();
            let message = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            // A wrong value comes as `field: what is wrong`, an unknown field with its name in the message.
            let (field, message) = match message.split_once(": ") {
                Some((field, rest)) if !field.contains(' ') => (field.to_owned(), rest),
                _ => (field_of("", message).replace("body", "query"), message),
            };
            ApiError::field(&field, message)
        })
    }
}

/// An id or a number of the path.
pub(super) fn parse_id<T: FromStr>(field: &str, text: &str) -> ApiResult<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| ApiError::field(field, error.to_string()))
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use palyra_client::api::{CreateRunParams, ListRunsParams};

    use super::*;

    fn refusal(error: ApiError) -> (u16, String) {
        let line = String::from_utf8(error.into_line().to_vec()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["error"]["code"], "request_invalid");
        (0, value["error"]["validation_errors"][0]["field"].as_str().unwrap().to_owned())
    }

    fn body(text: &str) -> (u16, String) {
        let parse = || parse_body::<CreateRunParams>(text.as_bytes()).unwrap_err();
        (parse().into_response().status().as_u16(), refusal(parse()).1)
    }

    #[test]
    fn a_wrong_body_is_refused_by_field() {
        let good = r#"{"prompt":"p","workspace":"/w"}"#;
        assert_eq!(parse_body::<CreateRunParams>(good.as_bytes()).unwrap().prompt, "p");
        assert_eq!(body("{"), (400, "body".to_owned()));
        assert_eq!(body("{} {}").0, 422);
        assert_eq!(body(&format!("{good} x")), (400, "body".to_owned()));
        assert_eq!(body(r#"{"workspace":"/w"}"#), (422, "prompt".to_owned()));
        assert_eq!(body(r#"{"prompt":"p","workspace":"/w","max_turns":3}"#), (422, "max_turns".to_owned()));
        assert_eq!(body(r#"{"prompt":"p","workspace":7}"#), (422, "workspace".to_owned()));
        let nested = r#"{"prompt":"p","workspace":"/w","limits":{"max_turns":-1}}"#;
        assert_eq!(body(nested), (422, "limits.max_turns".to_owned()));
        let nested = r#"{"prompt":"p","workspace":"/w","limits":{"turns":1}}"#;
        assert_eq!(body(nested), (422, "limits.turns".to_owned()));
    }

    async fn query(query: &str) -> Result<ListRunsParams, String> {
        let request = Request::builder().uri(format!("/x?{query}")).body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        match Params::from_request_parts(&mut parts, &()).await {
            Ok(Params(params)) => Ok(params),
            Err(error) => Err(refusal(error).1),
        }
    }

    #[tokio::test]
    async fn a_wrong_query_is_refused_by_field() {
        assert_eq!(query("limit=7&phase=running").await.unwrap().limit, Some(7));
        assert_eq!(query("").await.unwrap(), ListRunsParams::default());
        assert_eq!(query("limit=x").await.unwrap_err(), "limit");
        assert_eq!(query("phase=dancing").await.unwrap_err(), "phase");
        assert_eq!(query("limits=7").await.unwrap_err(), "limits");
        assert_eq!(query("session_id=short").await.unwrap_err(), "session_id");
    }
}
