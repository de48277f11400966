//! Vectors of texts by `batchEmbedContents`. The API does not say how many tokens it read.

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::ModelError;
use crate::wire::Transport;

/// Most bytes read of embeddings: two thousand vectors of three thousand numbers fit.
const MAX_VECTORS: usize = 128 * 1024 * 1024;

#[derive(Deserialize)]
struct Answer {
    embeddings: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    values: Vec<f32>,
}

/// One try at this place, for the model of this name with its kind before it.
pub(super) async fn ask(
    transport: &Transport,
    request: &EmbeddingRequest,
    url: Url,
    full_name: &str,
) -> Result<Embeddings, ModelError> {
    let texts = request.input.texts()?;
    let entry = |text: &String| {
        let mut entry = json!({ "model": full_name, "content": { "parts": [{ "text": text }] } });
        if let (Some(dimensions), Some(fields)) = (request.dimensions, entry.as_object_mut()) {
            fields.insert("outputDimensionality".to_owned(), dimensions.into());
        }
        entry
    };
    let body = json!({ "requests": texts.iter().map(entry).collect::<Vec<Value>>() });
    let answer = transport.post(url, &body, &request.model, MAX_VECTORS).await?;
    let Answer { embeddings } = serde_json::from_slice(&answer)
        .map_err(|error| ModelError::malformed(format!("the server's embeddings cannot be read: {error}")))?;
    Embeddings::checked(&request.model, embeddings.into_iter().map(|entry| entry.values).collect(), texts.len(), None)
}
