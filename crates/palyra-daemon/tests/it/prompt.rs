//! What a language model is sent before anybody has said much: the core of the prompt, on every wire.

use palyra_common::RunLifecyclePhase;
use palyra_models::TokenCounter;
use palyra_models::testing::{AnthropicWire, ChatWire, GeminiWire, ModelServer, OllamaWire, Reply, ResponsesWire};
use serde_json::Value;

use crate::support::Place;

/// Kind of provider and model for each wire.
const WIRES: [(&str, &str); 5] = [
    ("openai_compatible", "any-model"),
    ("openai", "gpt-5"),
    ("anthropic", "claude-sonnet-4-5"),
    ("gemini", "gemini-2.5-pro"),
    ("ollama", "qwen3"),
];
/// Most tokens of the core prompt and the core tools.
const CORE: u64 = 2_000;

fn server() -> ModelServer {
    ModelServer::speaking(
        vec![
            Box::new(ChatWire),
            Box::new(ResponsesWire),
            Box::new(AnthropicWire),
            Box::new(GeminiWire),
            Box::new(OllamaWire),
        ],
        vec![Reply::text(&["Hello."])],
    )
    .unwrap()
}

fn place(kind: &str, model: &str, server: &ModelServer, window: u32) -> Place {
    let place = Place::new();
    let url = if kind.starts_with("openai") { server.base_url() } else { server.address() };
    let text = format!(
        "version = 1\n[providers.p]\nkind = '{kind}'\nbase_url = '{url}'\ncontext_tokens = {window}\n\
         keys = [{{ name = 'k', key = 'env:TEST_KEY' }}]\n[routes]\ndefault = ['p/{model}']\n"
    );
    std::fs::write(place.path().join("models.toml"), text).unwrap();
    let config = place.path().join("palyra.toml").display().to_string();
    std::fs::write(&config, "version = 1\n").unwrap();
    place.with("PALYRA_CONFIG", &config).with("TEST_KEY", "not-a-key")
}

/// Tokens of the instructions and the tools in a body, whatever the wire calls them.
fn core_tokens(body: &Value) -> u64 {
    let counter = TokenCounter::new("gpt-5");
    let is_system = |message: &&Value| message.get("role").and_then(Value::as_str) == Some("system");
    let messages = ["messages", "input"].iter().filter_map(|field| body.get(field)?.as_array()).flatten();
    let system = ["system", "systemInstruction"].iter().filter_map(|field| body.get(field));
    let parts = messages.filter(is_system).chain(system).chain(body.get("tools"));
    parts.map(|part| counter.text(&part.to_string()).tokens).sum()
}

#[tokio::test]
async fn hello_costs_little_on_every_wire() {
    let mut costs = Vec::new();
    for (kind, model) in WIRES {
        let server = server();
        let place = place(kind, model, &server, 100_000);
        let daemon = place.start().await;
        let run = daemon.create("hello").await;
        daemon.follow(run.run_id, 1).await;
        let run = daemon.client.run(run.run_id).await.unwrap();
        assert_eq!(run.run.phase, RunLifecyclePhase::Completed, "{kind}: {run:?}");
        let asked = server.requests().into_iter().find(|request| request.body.get("tools").is_some());
        let body = asked.unwrap_or_else(|| panic!("{kind} was not asked: {:?}", server.requests())).body;
        costs.push((kind, core_tokens(&body)));
    }
    println!("tokens of instructions and core tools: {costs:?}");
    for (kind, tokens) in &costs {
        assert!((400..=CORE).contains(tokens), "{kind} is sent {tokens} tokens; at most {CORE} are wanted: {costs:?}");
    }
}

#[tokio::test]
async fn a_window_that_is_too_small_is_told_before_the_call() {
    let server = server();
    let place = place("openai_compatible", "tiny", &server, 1_024).with("PALYRA_MODEL_MAX_OUTPUT_TOKENS", "256");
    let daemon = place.start().await;
    let run = daemon.create("hello").await;
    daemon.follow(run.run_id, 1).await;
    let run = daemon.client.run(run.run_id).await.unwrap().run;
    assert_eq!(run.phase, RunLifecyclePhase::Failed);
    let detail = run.detail.unwrap();
    assert_eq!(detail.code, "model_context_too_long", "{detail:?}");
    assert!(detail.message.contains("window of 1024") && detail.message.contains("tools "), "{}", detail.message);
    let asked = server.requests().iter().filter(|request| request.method == "POST").count();
    assert_eq!(asked, 0, "nothing was sent");
}
