//! What is particular to OpenAI and OpenRouter, over real sockets.

use futures::StreamExt;
use palyra_common::SecretString;
use palyra_models::testing::{ModelServer, Reply};
use palyra_models::{
    EmbeddingInput, EmbeddingRequest, HttpProviderOptions, ModelErrorClass, ModelEvent, ModelProvider, OpenAi,
    OpenAiApi, OpenRouter, ReasoningEffort, ToolChoice,
};
use serde_json::json;

use crate::support::request;

fn options(server: &ModelServer) -> HttpProviderOptions {
    HttpProviderOptions {
        base_url: Some(server.base_url()),
        api_key: Some(SecretString::from("sk-hunter2\n".to_owned())),
        model: Some("m".to_owned()),
        ..HttpProviderOptions::new("configured")
    }
}

async fn text(provider: &dyn ModelProvider, request: palyra_models::ModelRequest) -> String {
    let mut stream = provider.stream(request).await.unwrap();
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        if let ModelEvent::TextDelta(delta) = event.unwrap() {
            text.push_str(&delta);
        }
    }
    text
}

#[tokio::test]
async fn what_a_model_does_not_know_is_left_out_from_then_on() {
    let refuse = |message: &str| Reply::status(400, &json!({"error": {"message": message}}));
    let server = ModelServer::start(vec![
        refuse("Encrypted content is not supported with this model."),
        refuse("Unsupported parameter: 'reasoning.effort' is not supported with this model."),
        Reply::text(&["one"]),
        Reply::text(&["two"]),
    ])
    .unwrap();
    let provider = OpenAi::new(options(&server)).unwrap();
    let asked = || palyra_models::ModelRequest { effort: Some(ReasoningEffort::Low), ..request() };
    assert_eq!(text(&provider, asked()).await, "one");
    assert_eq!(text(&provider, asked()).await, "two");
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!(requests[0].body["reasoning"], json!({"effort": "low", "summary": "auto"}));
    for later in &requests[2..] {
        assert_eq!(later.path, "/v1/responses");
        assert!(later.body.get("include").is_none() && later.body.get("reasoning").is_none());
        assert_eq!(later.body["store"], false);
    }
}

#[tokio::test]
async fn the_older_api_is_spoken_where_it_is_asked_for() {
    let server = ModelServer::start(vec![Reply::text(&["hi"])]).unwrap();
    let provider = OpenAi::with_api(options(&server), OpenAiApi::ChatCompletions).unwrap();
    let must = palyra_models::ModelRequest { tool_choice: ToolChoice::Required, ..request() };
    assert_eq!(text(&provider, must).await, "hi");
    let sent = &server.requests()[0];
    assert_eq!(sent.path, "/v1/chat/completions");
    assert_eq!(sent.header("authorization"), Some("Bearer sk-hunter2"));
    assert_eq!((&sent.body["max_completion_tokens"], &sent.body["tool_choice"]), (&json!(100), &json!("required")));
    assert!(sent.body["prompt_cache_key"].is_string());
}

#[tokio::test]
async fn vectors_and_lists_come_from_the_same_server() {
    let server = ModelServer::start(Vec::new()).unwrap();
    server.offer_models(&["first", "second"]);
    let provider = OpenAi::new(options(&server)).unwrap();
    let input = EmbeddingInput::Texts(vec!["a".to_owned(), "bcd".to_owned()]);
    let vectors = provider.embed(EmbeddingRequest { model: "e".to_owned(), input, dimensions: None }).await.unwrap();
    assert_eq!(vectors.unwrap().vectors, [[1.0, 0.0, 0.5], [3.0, 1.0, 0.5]]);
    let models: Vec<_> = provider.models().await.unwrap().into_iter().map(|entry| entry.id).collect();
    assert_eq!(models, ["first", "second"]);
}

#[tokio::test]
async fn openrouter_learns_who_asks_and_nothing_about_whom() {
    let server = ModelServer::start(vec![Reply::text(&["hi"])]).unwrap();
    let provider = OpenRouter::new(options(&server)).unwrap();
    assert_eq!(text(&provider, request()).await, "hi");
    let sent = &server.requests()[0];
    assert_eq!(sent.header("x-title"), Some("Palyra"));
    assert!(sent.header("http-referer").is_some());
    assert!(sent.body.get("user").is_none());
}

#[tokio::test]
async fn without_a_model_nothing_is_sent() {
    let server = ModelServer::start(Vec::new()).unwrap();
    let nameless = || HttpProviderOptions { model: Some(" ".to_owned()), ..options(&server) };
    let providers: [Box<dyn ModelProvider>; 2] =
        [Box::new(OpenAi::new(nameless()).unwrap()), Box::new(OpenRouter::new(nameless()).unwrap())];
    for provider in providers {
        let error = provider.stream(request()).await.map(|_| ()).unwrap_err();
        assert_eq!(error.class, ModelErrorClass::Permanent);
        assert!(error.message.starts_with("no model is chosen for `configured`"), "{error}");
    }
    assert!(server.requests().is_empty());
}
