//! Schemas that converters stumble over, sent to the real llama.cpp server: every one is accepted in the form in which it leaves.

use std::path::Path;

use palyra_common::RunId;
use palyra_models::{
    Anthropic, HttpProviderOptions, Message, ModelErrorClass, ModelProvider, ModelRequest, OpenAi, OpenAiCompatible,
    OutputShape, Purpose, ToolChoice, ToolSpec, default_tools,
};
use serde_json::Value;

use crate::llama::{self, Llama, Weights};

/// Everything fits: what is tried is what a server makes of schemas.
const WINDOW: u32 = 40_960;

async fn start() -> Llama {
    tokio::task::spawn_blocking(|| llama::start_with(Weights::Random, WINDOW, 1, None)).await.unwrap()
}

fn providers(server: &Llama) -> [Box<dyn ModelProvider>; 3] {
    let options = |base_url: String| HttpProviderOptions {
        base_url: Some(base_url),
        model: Some("tiny".to_owned()),
        ..HttpProviderOptions::new("llama")
    };
    [
        Box::new(OpenAiCompatible::new(options(server.base_url())).unwrap()),
        Box::new(OpenAi::new(options(server.base_url())).unwrap()),
        Box::new(Anthropic::new(options(server.address().to_owned())).unwrap()),
    ]
}

fn request(tools: Vec<ToolSpec>, tool_choice: ToolChoice) -> ModelRequest {
    ModelRequest {
        tools: tools.into(),
        tool_choice,
        max_output_tokens: Some(1),
        ..ModelRequest::new(RunId::from_u128(1), 1, Purpose::Turn, vec![Message::user("x")])
    }
}

/// What the server says against a request. That it is too long is said after its schemas were converted.
async fn refusal(provider: &dyn ModelProvider, request: ModelRequest) -> Option<String> {
    let error = provider.stream(request).await.err()?;
    (error.class != ModelErrorClass::ContextTooLong).then(|| error.to_string())
}

fn nasty() -> Vec<(String, Value)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nasty_schemas.json");
    let all: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(all.len() > 200);
    all.into_iter().map(|one| (one["name"].as_str().unwrap().to_owned(), one["schema"].clone())).collect()
}

#[tokio::test]
async fn every_nasty_schema_is_accepted_as_a_tool_and_as_an_answer() {
    let server = start().await;
    let [chat, ..] = providers(&server);
    let mut refused = Vec::new();
    for (name, schema) in nasty() {
        let tool = ToolSpec {
            name: "mcp.box.put".to_owned(),
            description: "d".to_owned(),
            input_schema: schema.clone().into(),
        };
        let calls = request(vec![tool], ToolChoice::Required);
        refused.extend(refusal(&*chat, calls).await.map(|said| format!("{name}: {said}")));
        let output = OutputShape::Json { name: "answer".to_owned(), schema };
        let answers = ModelRequest { output, ..request(Vec::new(), ToolChoice::Auto) };
        refused.extend(refusal(&*chat, answers).await.map(|said| format!("{name}, as an answer: {said}")));
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test]
async fn the_default_tools_are_accepted_on_every_wire() {
    let server = start().await;
    for provider in providers(&server) {
        for choice in [ToolChoice::Auto, ToolChoice::Required] {
            assert_eq!(refusal(&*provider, request(default_tools(), choice)).await, None);
        }
    }
}
