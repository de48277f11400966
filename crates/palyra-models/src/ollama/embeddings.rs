//! Vectors of texts by `/api/embed`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::ModelError;
use crate::wire::{Transport, count};

/// Most bytes read of embeddings: two thousand vectors of three thousand numbers fit.
const MAX_VECTORS: usize = 128 * 1024 * 1024;

#[derive(Deserialize)]
struct Answer {
    embeddings: Vec<Vec<f32>>,
    #[serde(default)]
    prompt_eval_count: Value,
}

/// One try. A text that does not fit is an error rather than cut.
pub(super) async fn ask(transport: &Transport, request: &EmbeddingRequest) -> Result<Embeddings, ModelError> {
    let texts = request.input.texts()?;
    let mut body = json!({ "model": request.model, "input": texts, "truncate": false });
    if let (Some(dimensions), Some(fields)) = (request.dimensions, body.as_object_mut()) {
        fields.insert("dimensions".to_owned(), dimensions.into());
    }
    let url = transport.base().join("api/embed");
    let answer = transport.post(url, &body, &request.model, MAX_VECTORS).await?;
    let Answer { embeddings, prompt_eval_count } = serde_json::from_slice(&answer)
        .map_err(|error| ModelError::malformed(format!("the server's embeddings cannot be read: {error}")))?;
    Embeddings::checked(&request.model, embeddings, texts.len(), count(&prompt_eval_count))
}
