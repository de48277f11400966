//! Lists of models, as each vendor gives them.

use palyra_models::testing::Reply;
use palyra_models::{Capability, ModelEntry, Ollama};
use serde_json::json;

use super::{Vendor, fixtures, read_json};

#[tokio::test]
async fn anthropic_lists_its_models() {
    let (server, provider) = Vendor::Anthropic.pair(Vec::new());
    server.serve_at("/v1/models", Reply::status(200, &read_json(&fixtures(Vendor::Anthropic, "models.json"))));
    let models = provider.models().await.unwrap();
    let ids: Vec<_> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["claude-opus-5-5", "claude-3-haiku-20240307"]);
    assert_eq!(
        models[0],
        ModelEntry {
            name: Some("Claude Opus 5.5".to_owned()),
            context_tokens: Some(1_000_000),
            max_output_tokens: Some(128_000),
            capabilities: Some(vec![
                Capability::Tools,
                Capability::Images,
                Capability::Files,
                Capability::Reasoning,
                Capability::StructuredOutput,
            ]),
            ..ModelEntry::named("claude-opus-5-5")
        }
    );
    assert_eq!(models[1].capabilities, None);
}

#[tokio::test]
async fn a_list_that_never_ends_is_left() {
    let (server, provider) = Vendor::Anthropic.pair(Vec::new());
    let page = json!({"data": [{"id": "m", "type": "model"}], "has_more": true, "last_id": "m"});
    server.serve_at("/v1/models", Reply::status(200, &page));
    assert_eq!(provider.models().await.unwrap().len(), 10);
    assert!(server.requests()[1].path.contains("after_id=m"));
    let (server, provider) = Vendor::Gemini.pair(Vec::new());
    let model = json!({"name": "models/m", "supportedGenerationMethods": ["generateContent"]});
    server.serve_at("/v1beta/models", Reply::status(200, &json!({"models": [model], "nextPageToken": "t"})));
    assert_eq!(provider.models().await.unwrap().len(), 10);
    assert!(server.requests()[1].path.contains("pageToken=t"));
}

#[tokio::test]
async fn gemini_lists_its_models() {
    let (server, provider) = Vendor::Gemini.pair(Vec::new());
    server.serve_at("/v1beta/models", Reply::status(200, &read_json(&fixtures(Vendor::Gemini, "models.json"))));
    let models = provider.models().await.unwrap();
    let ids: Vec<_> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["gemini-3.5-flash", "gemma-3-27b-it", "gemini-embedding-001"]);
    assert_eq!((models[0].context_tokens, models[0].max_output_tokens), (Some(1_048_576), Some(65_536)));
    assert!(models[0].capabilities.as_ref().unwrap().contains(&Capability::Reasoning));
    assert_eq!(models[1].capabilities, Some(Vec::new()));
    assert_eq!(models[2].capabilities, Some(vec![Capability::Embeddings]));
}

#[tokio::test]
async fn ollama_lists_what_is_on_the_machine() {
    let server = Vendor::Ollama.server(Vec::new());
    let provider = Vendor::Ollama.provider(Vendor::Ollama.options(&server));
    server.serve_at("/api/tags", Reply::status(200, &read_json(&fixtures(Vendor::Ollama, "tags.json"))));
    server.serve_at("/api/show", Reply::status(200, &read_json(&fixtures(Vendor::Ollama, "show.json"))));
    let models = provider.models().await.unwrap();
    let ids: Vec<_> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["qwen3:8b", "nomic-embed-text:latest"]);
    assert_eq!(models[0].context_tokens, Some(40_960));
    assert_eq!(
        models[0].capabilities,
        Some(vec![Capability::Tools, Capability::Reasoning, Capability::StructuredOutput])
    );
    assert_eq!(server.requests()[1].body, json!({"model": "qwen3:8b"}));
    let shown = Ollama::new(Vendor::Ollama.options(&server)).unwrap().show("qwen3:8b").await.unwrap();
    assert_eq!(shown, models[0]);
}

#[tokio::test]
async fn models_that_cannot_be_asked_about_are_listed_by_name() {
    let (server, provider) = Vendor::Ollama.pair(Vec::new());
    server.serve_at("/api/tags", Reply::status(200, &read_json(&fixtures(Vendor::Ollama, "tags.json"))));
    server.serve_at("/api/show", Reply::status(500, &json!({"error": "oops"})));
    assert_eq!(provider.models().await.unwrap()[0], ModelEntry::named("qwen3:8b"));
}

#[tokio::test]
async fn what_is_no_list_is_an_error() {
    for (vendor, place) in
        [(Vendor::Anthropic, "/v1/models"), (Vendor::Gemini, "/v1beta/models"), (Vendor::Ollama, "/api/tags")]
    {
        for body in ["<html>", "[]", "{}", "{\"data\": 1, \"models\": 2}"] {
            let (server, provider) = vendor.pair(Vec::new());
            server.serve_at(place, Reply::raw(body));
            assert!(provider.models().await.is_err(), "{vendor:?} {body}");
        }
    }
}
