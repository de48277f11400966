//! `POST /v1/embeddings`: passed on to the provider where it has embedding models, refused where it has none. Vectors are never made up.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_common::{ErrorCategory, StableErrorEnvelope};
use palyra_models::{EmbeddingInput, EmbeddingRequest};
use serde_json::{Value, json};

use super::error::OpenAiResult;
use super::fields::Fields;
use super::user_of_models;
use crate::app::App;
use crate::dispatch::{self, Beside, Caller, Refusal, Result};
use crate::http::{ApiError, Body};

/// Most inputs of one request, as OpenAI has it.
const MAX_INPUTS: usize = 2048;

/// How vectors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Float,
    /// Four bytes per number, the lowest first.
    Base64,
}

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    body: std::result::Result<Body, ApiError>,
) -> OpenAiResult<Json<Value>> {
    let caller = user_of_models(&app, &caller)?;
    dispatch::beside(&app, &caller, Beside::OpenAiEmbeddings)?;
    let Body(body) = body?;
    let (request, format) = read(&body)?;
    // What was asked for costs money, also if the client does not wait for it: it is booked when it is there.
    let (engine, owner) = (app.engine.clone(), caller.id().to_owned());
    let embedding = async move { engine.embed(&owner, request).await.map_err(Refusal::from) };
    let Some(embeddings) = dispatch::to_the_end(&app, embedding).await? else {
        return Err(unavailable(&app.models.view().name).into());
    };
    let data: Vec<Value> = embeddings
        .vectors
        .iter()
        .enumerate()
        .map(|(index, vector)| json!({ "object": "embedding", "index": index, "embedding": written(vector, format) }))
        .collect();
    let tokens = embeddings.input_tokens.unwrap_or_default();
    Ok(Json(json!({
        "object": "list",
        "data": data,
        "model": embeddings.model,
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    })))
}

pub(super) fn read(body: &[u8]) -> Result<(EmbeddingRequest, Format)> {
    let mut fields = Fields::of_body(body)?;
    let model = fields.needed_text("model")?;
    let input = input(fields.take("input"))?;
    if input.is_empty() || input.len() > MAX_INPUTS {
        return Err(Refusal::field("input", format!("it must be 1 to {MAX_INPUTS} strings")));
    }
    let dimensions = fields.count("dimensions")?;
    if dimensions == Some(0) {
        return Err(Refusal::field("dimensions", "it must be at least 1"));
    }
    let format = match fields.text("encoding_format")?.as_deref() {
        None | Some("float") => Format::Float,
        Some("base64") => Format::Base64,
        Some(_) => return Err(Refusal::field("encoding_format", "it must be float or base64")),
    };
    fields.pass_over(&["user"]);
    fields.end()?;
    Ok((EmbeddingRequest { model, input, dimensions }, format))
}

/// A text, texts, tokens, or lists of tokens.
fn input(value: Option<Value>) -> Result<EmbeddingInput> {
    let wrong = || Refusal::field("input", "it must be a string, a list of strings, or tokens");
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let tokens = |list: &[Value]| list.iter().map(number).collect::<Option<Vec<u32>>>().filter(|list| !list.is_empty());
    let list = match value {
        None => return Err(Refusal::field("input", "it is missing")),
        Some(Value::String(text)) => return Ok(EmbeddingInput::Texts(vec![text])),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(wrong()),
    };
    match list.first() {
        Some(Value::String(_)) => {
            let texts: Option<Vec<String>> = list.iter().map(|value| value.as_str().map(str::to_owned)).collect();
            texts.map(EmbeddingInput::Texts).ok_or_else(wrong)
        }
        Some(Value::Number(_)) => tokens(&list).map(|tokens| EmbeddingInput::Tokens(vec![tokens])).ok_or_else(wrong),
        Some(Value::Array(_)) => {
            let lists: Option<Vec<_>> =
                list.iter().map(|value| value.as_array().and_then(|list| tokens(list))).collect();
            lists.map(EmbeddingInput::Tokens).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

fn written(vector: &[f32], format: Format) -> Value {
    match format {
        Format::Float => json!(vector),
        Format::Base64 => {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            STANDARD.encode(bytes).into()
        }
    }
}

fn unavailable(provider: &str) -> StableErrorEnvelope {
    let message = format!("the provider `{provider}` has no embedding models");
    StableErrorEnvelope::new("embeddings_unavailable", ErrorCategory::Dependency, message)
        .hint("configure an OpenAI-compatible server with `model.base_url` that has one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_input_is_read_and_others_are_refused() {
        let texts = |list: &[&str]| EmbeddingInput::Texts(list.iter().map(|&text| text.to_owned()).collect());
        assert_eq!(input(Some(json!("a"))).unwrap(), texts(&["a"]));
        assert_eq!(input(Some(json!(["a", "b"]))).unwrap(), texts(&["a", "b"]));
        assert_eq!(input(Some(json!([1, 2]))).unwrap(), EmbeddingInput::Tokens(vec![vec![1, 2]]));
        assert_eq!(input(Some(json!([[1], [2]]))).unwrap(), EmbeddingInput::Tokens(vec![vec![1], vec![2]]));
        for wrong in [
            json!(null),
            json!(7),
            json!({}),
            json!([]),
            json!(["a", 1]),
            json!([1, "a"]),
            json!([[1], []]),
            json!([-1]),
        ] {
            assert!(input(Some(wrong.clone())).is_err(), "{wrong}");
        }
    }

    #[test]
    fn vectors_are_written_as_asked() {
        assert_eq!(written(&[1.0, -2.0], Format::Float), json!([1.0, -2.0]));
        assert_eq!(written(&[1.0, -2.0], Format::Base64), "AACAPwAAAMA=");
    }
}
