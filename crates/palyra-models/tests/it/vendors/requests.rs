//! Every kind of request is written as the documentation wants it.
//!
//! `NAME.json` holds what is special about the request, and the body that the server gets.

use palyra_models::testing::{CapturedRequest, Reply};
use palyra_models::{Anthropic, ModelProvider as _, Ollama};
use serde_json::json;

use super::{Vendor, ask, files, fixtures, read_json, request};

async fn check(vendor: Vendor) {
    let folder = fixtures(vendor, "requests");
    let recorded = files(&folder, ".json");
    assert!(recorded.len() > 5, "{}", folder.display());
    for path in recorded {
        let fixture = read_json(&path);
        let (server, provider) = vendor.pair(vec![Reply::raw(vendor.good_answer())]);
        let (_, error) = ask(provider.as_ref(), request(fixture.get("request"))).await;
        assert!(error.is_none(), "{}: {error:?}", path.display());
        let sent = &server.requests()[0].body;
        assert_eq!(*sent, fixture["body"], "{}: sent {}", path.display(), serde_json::to_string_pretty(sent).unwrap());
    }
}

#[tokio::test]
async fn anthropic_requests_are_written_as_documented() {
    check(Vendor::Anthropic).await;
}

#[tokio::test]
async fn gemini_requests_are_written_as_documented() {
    check(Vendor::Gemini).await;
}

#[tokio::test]
async fn ollama_requests_are_written_as_documented() {
    check(Vendor::Ollama).await;
}

#[tokio::test]
async fn a_form_that_the_model_does_not_know_is_replaced_and_remembered() {
    let refusal = |message: &str| {
        Reply::status(400, &json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}))
    };
    let vendor = Vendor::Anthropic;
    let good = || Reply::raw(vendor.good_answer());
    let (server, provider) = vendor.pair(vec![
        refusal("\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" instead."),
        good(),
        good(),
    ]);
    let thoughtful =
        || request(Some(&json!({"model": "claude-sonnet-4-5", "effort": "low", "max_output_tokens": 9000})));
    for _ in 0..2 {
        let (events, error) = ask(provider.as_ref(), thoughtful()).await;
        assert!(error.is_none() && !events.is_empty(), "{error:?}");
    }
    let sent: Vec<_> = server.requests().iter().map(|request| request.body["thinking"]["type"].clone()).collect();
    assert_eq!(sent, ["enabled", "adaptive", "adaptive"]);

    // A model that may not be forced is told, and thinks as before.
    let (server, provider) =
        vendor.pair(vec![refusal("tool_choice forces tool use, which this model does not support"), good()]);
    let forced = json!({"effort": "low", "tool_choice": "required"});
    let (_, error) = ask(provider.as_ref(), request(Some(&forced))).await;
    assert!(error.is_none(), "{error:?}");
    let sent = server.requests();
    assert_eq!(sent[0].body["tool_choice"]["type"], "any");
    assert!(sent[1].body.get("tool_choice").is_none());
    assert_eq!(sent[1].body["system"][1]["text"], "Do not answer in words: call one of the tools.");
    assert_eq!(sent[1].body["thinking"]["type"], "adaptive");

    // Thoughts that the server cannot read any more do not end the run.
    let (server, provider) =
        vendor.pair(vec![refusal("messages.1.content.0: Invalid `signature` in `thinking` block"), good(), good()]);
    let thought = json!({"origin": "anthropic", "text": "hm", "position": 0, "payload": {
        "block": {"type": "thinking", "thinking": "hm", "signature": "S"}, "text_before": 0}});
    let messages = json!([{"role": "user", "content": "go"},
        {"role": "assistant", "content": "so", "reasoning": [thought]}, {"role": "user", "content": "on"}]);
    for _ in 0..2 {
        let (_, error) = ask(provider.as_ref(), request(Some(&json!({"messages": messages})))).await;
        assert!(error.is_none(), "{error:?}");
    }
    let blocks = |request: &CapturedRequest| request.body["messages"][1]["content"].as_array().unwrap().len();
    assert_eq!(server.requests().iter().map(blocks).collect::<Vec<_>>(), [2, 1, 2]);

    let vendor = Vendor::Ollama;
    let good = || Reply::raw(vendor.good_answer());
    let refusal = Reply::status(400, &json!({"error": "\"llama3\" does not support thinking"}));
    let (server, provider) = vendor.pair(vec![refusal, good(), good()]);
    for _ in 0..2 {
        let (_, error) = ask(provider.as_ref(), request(Some(&json!({"model": "llama3", "effort": "high"})))).await;
        assert!(error.is_none(), "{error:?}");
    }
    let sent: Vec<_> = server.requests().iter().map(|request| request.body.get("think").is_some()).collect();
    assert_eq!(sent, [true, false, false]);
}

#[tokio::test]
async fn without_a_model_the_line_says_what_to_do() {
    for vendor in [Vendor::Anthropic, Vendor::Gemini] {
        let (server, _) = vendor.pair(Vec::new());
        let mut options = vendor.options(&server);
        options.model = Some("  ".to_owned());
        let error = vendor.provider(options).stream(request(None)).await.map(|_| ()).unwrap_err();
        assert!(error.message.contains("name one, for example"), "{error}");
        assert!(server.requests().is_empty());
    }
    let (server, _) = Vendor::Ollama.pair(vec![Reply::raw(Vendor::Ollama.good_answer())]);
    let mut options = Vendor::Ollama.options(&server);
    options.model = None;
    let ollama = Ollama::new(options).unwrap();
    server.serve_at("/api/tags", Reply::status(200, &json!({"models": []})));
    let error = ollama.stream(request(None)).await.map(|_| ()).unwrap_err();
    assert!(error.message.contains("ollama pull"), "{error}");
}

#[tokio::test]
async fn a_model_name_that_leads_elsewhere_is_not_asked() {
    let (server, provider) = Vendor::Gemini.pair(Vec::new());
    for name in ["../../v1/files", "models/../x", "models/", "a b", "x?key=1", "x:y", "publishers/google", ".."] {
        let error = provider.stream(request(Some(&json!({"model": name})))).await.map(|_| ()).unwrap_err();
        assert!(error.message.contains("cannot be the name of a model"), "{name}: {error}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn tokens_are_counted_by_the_provider_itself() {
    let vendor = Vendor::Anthropic;
    let server = vendor.server(Vec::new());
    let provider = Anthropic::new(vendor.options(&server)).unwrap();
    server.serve_at("/v1/messages/count_tokens", Reply::status(200, &json!({"input_tokens": 2095})));
    assert_eq!(provider.count_tokens(&request(None)).await.unwrap(), 2095);
    let sent = &server.requests()[0].body;
    assert!(sent.get("max_tokens").is_none() && sent.get("stream").is_none(), "{sent}");
    assert_eq!(sent["messages"][0]["content"][0]["text"], "read a.txt");
    assert_eq!(sent["tools"][0]["name"], "palyra__fs__read");

    let server = vendor.server(Vec::new());
    let provider = Anthropic::new(vendor.options(&server)).unwrap();
    server.serve_at("/v1/messages/count_tokens", Reply::status(200, &json!({"tokens": "many"})));
    assert!(provider.count_tokens(&request(None)).await.is_err());
}
