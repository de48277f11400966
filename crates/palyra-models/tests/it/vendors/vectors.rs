//! Vectors of texts from the vendors that make them.

use palyra_models::testing::Reply;
use palyra_models::{EmbeddingInput, EmbeddingRequest, Embeddings};
use serde_json::{Value, json};

use super::Vendor;

fn two_texts() -> EmbeddingRequest {
    let input = EmbeddingInput::Texts(vec!["one".to_owned(), "two".to_owned()]);
    EmbeddingRequest { model: "embed".to_owned(), input, dimensions: Some(2) }
}

fn rows() -> [(Vendor, &'static str, Value, Value, Option<u64>); 2] {
    let content = |text: &str| json!({"model": "models/embed", "content": {"parts": [{"text": text}]}, "outputDimensionality": 2});
    [
        (
            Vendor::Ollama,
            "/api/embed",
            json!({"model": "embed", "input": ["one", "two"], "truncate": false, "dimensions": 2}),
            json!({"model": "embed", "embeddings": [[0.5, 1.0], [2.0, -1.0]], "total_duration": 1, "prompt_eval_count": 4}),
            Some(4),
        ),
        (
            Vendor::Gemini,
            "/v1beta/models/embed:batchEmbedContents",
            json!({"requests": [content("one"), content("two")]}),
            json!({"embeddings": [{"values": [0.5, 1.0]}, {"values": [2.0, -1.0]}]}),
            None,
        ),
    ]
}

#[tokio::test]
async fn a_vector_comes_for_each_text() {
    for (vendor, place, body, answer, input_tokens) in rows() {
        let (server, provider) = vendor.pair(Vec::new());
        server.serve_at(place, Reply::status(200, &answer));
        let made = provider.embed(two_texts()).await.unwrap().unwrap();
        let vectors = vec![vec![0.5, 1.0], vec![2.0, -1.0]];
        assert_eq!(made, Embeddings { model: "embed".to_owned(), vectors, input_tokens, asked: None });
        assert_eq!(server.requests()[0].body, body, "{vendor:?}");
        // Other tokens than the model's own mean nothing to it.
        let tokens = EmbeddingRequest { input: EmbeddingInput::Tokens(vec![vec![1]]), ..two_texts() };
        assert!(provider.embed(tokens).await.is_err());
    }
}

#[tokio::test]
async fn what_is_not_one_vector_for_each_text_is_refused() {
    for (vendor, place, ..) in rows() {
        for answer in [
            json!({}),
            json!({"embeddings": []}),
            json!({"embeddings": [[1.0], [1.0, 2.0]]}),
            json!({"embeddings": [{"values": [1.0]}]}),
            json!({"embeddings": [{"values": []}, {"values": []}]}),
            json!({"embeddings": [[], []]}),
            json!({"embeddings": [["x"], [1]]}),
        ] {
            let (server, provider) = vendor.pair(Vec::new());
            server.serve_at(place, Reply::status(200, &answer));
            assert!(provider.embed(two_texts()).await.is_err(), "{vendor:?} {answer}");
        }
    }
    let (_server, provider) = Vendor::Anthropic.pair(Vec::new());
    assert_eq!(provider.embed(two_texts()).await.unwrap(), None, "there is no such model");
}
