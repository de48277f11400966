//! Asking a server for embeddings, and reading what it says with care: vectors that are missing, out of order or not numbers are an error.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::embedding::{EmbeddingInput, EmbeddingRequest, Embeddings};
use crate::error::ModelError;
use crate::wire::{Transport, count};

/// Most bytes read of embeddings: two thousand vectors of three thousand numbers fit.
const MAX_VECTORS: usize = 128 * 1024 * 1024;

/// One try.
pub(super) async fn ask(transport: &Transport, request: &EmbeddingRequest) -> Result<Embeddings, ModelError> {
    let url = transport.base().join("embeddings");
    let answer = transport.post(url, &body(request), &request.model, MAX_VECTORS).await?;
    read(&answer, request)
}

fn body(request: &EmbeddingRequest) -> Value {
    let input = match &request.input {
        EmbeddingInput::Texts(texts) => json!(texts),
        EmbeddingInput::Tokens(tokens) => json!(tokens),
    };
    let mut body = json!({ "model": request.model, "input": input, "encoding_format": "float" });
    if let (Some(dimensions), Some(fields)) = (request.dimensions, body.as_object_mut()) {
        fields.insert("dimensions".to_owned(), dimensions.into());
    }
    body
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Entry>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

fn read(answer: &[u8], request: &EmbeddingRequest) -> Result<Embeddings, ModelError> {
    let Answer { data, model, usage } = serde_json::from_slice(answer)
        .map_err(|error| ModelError::malformed(format!("the server's embeddings cannot be read: {error}")))?;
    let mut entries: Vec<_> =
        data.into_iter().enumerate().map(|(place, entry)| (entry.index.unwrap_or(place), entry.embedding)).collect();
    entries.sort_by_key(|(index, _)| *index);
    let in_order = entries.iter().map(|(index, _)| *index).eq(0..request.input.len());
    let vectors: Vec<Vec<f32>> = entries.into_iter().map(|(_, vector)| vector).collect();
    let length = vectors.first().map_or(0, Vec::len);
    let whole = vectors.iter().all(|vector| vector.len() == length && vector.iter().all(|number| number.is_finite()));
    if !in_order || length == 0 || !whole {
        return Err(ModelError::malformed("the server did not send one vector for each input"));
    }
    let model = model.unwrap_or_else(|| request.model.clone());
    Ok(Embeddings { model, vectors, input_tokens: usage.get("prompt_tokens").and_then(count), asked: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(count: usize) -> EmbeddingRequest {
        let input = EmbeddingInput::Texts(vec!["x".to_owned(); count]);
        EmbeddingRequest { model: "m".to_owned(), input, dimensions: Some(2) }
    }

    #[test]
    fn vectors_come_in_the_order_of_the_inputs() {
        let text =
            r#"{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2.5]}],"usage":{"prompt_tokens":7}}"#;
        let embeddings = read(text.as_bytes(), &request(2)).unwrap();
        assert_eq!(embeddings.vectors, [[1.0, 2.5], [3.0, 4.0]]);
        assert_eq!((embeddings.model.as_str(), embeddings.input_tokens), ("m", Some(7)));
        for junk in ["null", "-7", "7.5", r#""many""#, "1000000000000000000"] {
            let text = text.replace(":7}", &format!(":{junk}}}"));
            assert_eq!(read(text.as_bytes(), &request(2)).unwrap().input_tokens, None, "{text}");
        }
        assert_eq!(body(&request(1))["dimensions"], 2);
    }

    #[test]
    fn what_is_not_one_vector_for_each_input_is_refused() {
        for text in [
            "",
            "[]",
            r#"{"data":[]}"#,
            r#"{"data":[{"embedding":[]},{"embedding":[]}]}"#,
            r#"{"data":[{"embedding":[1]}]}"#,
            r#"{"data":[{"embedding":[1]},{"embedding":[1,2]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}"#,
            r#"{"data":[{"embedding":["1"]},{"embedding":[2]}]}"#,
        ] {
            assert!(read(text.as_bytes(), &request(2)).is_err(), "{text}");
        }
    }
}
