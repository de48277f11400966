//! The real llama.cpp server, which nobody here wrote: what our side makes of what it really sends.
//!
//! The server comes from `scripts/clients/setup.sh llama`, made once per machine. Most tests use random weights: what they say means nothing; asserted is
//! that every answer ends in order, that tokens are counted, and that grammars hold: a call that has to be made is made, a
//! document that has to fit a schema fits it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use futures::StreamExt;
use palyra_common::RunId;
use palyra_models::{
    AssembledTurn, HttpProviderOptions, Message, ModelErrorClass, ModelProvider, ModelRequest, OpenAi,
    OpenAiCompatible, OutputShape, Purpose, StopReason, ToolCallRequest, ToolChoice, ToolSpec, TurnAssembler,
};
use serde_json::{Value, json};

/// What answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weights {
    /// Half a megabyte of noise.
    Random,
    /// SmolLM2 with 135 million parameters, offered tools through a template.
    Real,
}

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Llama {
    process: Child,
    address: String,
}

impl Llama {
    /// The address without a path, such as `http://127.0.0.1:4711`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The base URL of its OpenAI wire.
    pub(crate) fn base_url(&self) -> String {
        format!("{}/v1", self.address)
    }

    /// Ends the server at once, in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        // It would leave by itself once its standard input closes; this is quicker.
        self.kill();
    }
}

/// Starts a server with random weights and waits until it answers.
pub(crate) fn start() -> Llama {
    start_with(Weights::Random, 4096, 2, None)
}

/// The same with other weights, another window, and a key that it demands.
pub(crate) fn start_with(weights: Weights, window: u32, slots: u32, key: Option<&str>) -> Llama {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new("bash").arg(here.join("../../scripts/clients/setup.sh")).arg("llama").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let python = String::from_utf8(made.stdout).unwrap();
    let mut process = Command::new(python.trim())
        .arg("-B")
        .arg(here.join("tests/llama/serve.py"))
        .arg(match weights {
            Weights::Random => "noise",
            Weights::Real => "smollm2",
        })
        .args([window.to_string(), slots.to_string()])
        .args(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let address = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("listening ").map(str::to_owned));
    let address = address.unwrap_or_else(|| panic!("the server did not start: {:?}", process.wait()));
    Llama { process, address }
}

fn provider(llama: &Llama) -> OpenAiCompatible {
    let options = HttpProviderOptions { base_url: Some(llama.base_url()), ..HttpProviderOptions::new("llama") };
    OpenAiCompatible::new(options).unwrap()
}

fn responses(llama: &Llama) -> OpenAi {
    let options = HttpProviderOptions {
        base_url: Some(llama.base_url()),
        model: Some("tiny".to_owned()),
        ..HttpProviderOptions::new("llama")
    };
    OpenAi::new(options).unwrap()
}

/// A tool whose arguments a grammar brings to an end.
fn picking() -> ToolSpec {
    ToolSpec {
        name: "palyra.test.pick".to_owned(),
        description: "Picks a colour".to_owned(),
        input_schema: colour().into(),
    }
}

fn colour() -> Value {
    json!({
        "type": "object",
        "properties": { "colour": { "type": "string", "enum": ["red", "blue"] } },
        "required": ["colour"],
        "additionalProperties": false,
    })
}

fn asked(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { max_output_tokens: Some(400), ..ModelRequest::new(RunId::from_u128(1), 1, Purpose::Turn, messages) }
}

/// The whole answer; every answer ends in order and is counted.
async fn answer(provider: &dyn ModelProvider, request: ModelRequest) -> AssembledTurn {
    let mut stream = provider.stream(request).await.unwrap();
    let mut assembler = TurnAssembler::new();
    while let Some(event) = stream.next().await {
        assembler.push(&event.unwrap()).unwrap();
    }
    assert!(assembler.is_finished());
    let turn = assembler.finish();
    assert!(turn.usage.input_tokens > 0 && turn.usage.output_tokens > 0, "{turn:?}");
    // Noise that is cut off may be called complete by the server.
    assert!(turn.repairs.is_empty() || turn.usage.output_tokens >= 400, "{turn:?}");
    turn
}

/// A conversation in which everything has happened that can.
fn history() -> Vec<Message> {
    let call = |id: &str| ToolCallRequest {
        id: id.to_owned(),
        name: "palyra.test.pick".to_owned(),
        arguments: "{\"colour\":\"red\"}".to_owned(),
    };
    vec![
        Message::system("be brief"),
        Message::user("pick two"),
        Message::assistant("I pick", vec![call("c1"), call("c2")]),
        Message::tool_result("c1", "palyra.test.pick", "taken"),
        Message::tool_error("c2", "palyra.test.pick", "gone"),
        Message::assistant("One is gone.", Vec::new()),
        Message::user("again"),
    ]
}

fn picked(turn: &AssembledTurn) -> Value {
    // Noise does not know when to stop: after the first call it may go on until its answer is cut off.
    assert!(matches!(turn.stop_reason, StopReason::ToolUse | StopReason::MaxTokens), "{turn:?}");
    let [call, ..] = turn.tool_calls.as_slice() else { panic!("{turn:?}") };
    assert_eq!(call.name, "palyra.test.pick");
    assert!(!call.id.is_empty());
    serde_json::from_str(&call.arguments).unwrap()
}

fn is_colour(value: &Value) -> bool {
    [json!({"colour": "red"}), json!({"colour": "blue"})].contains(value)
}

#[tokio::test]
async fn chat_streams_text_calls_and_documents() {
    let llama = start();
    let provider = provider(&llama);
    let [model] = provider.models().await.unwrap().try_into().unwrap();
    assert_eq!(model.context_tokens, Some(4096), "{model:?}");

    let spoken = answer(&provider, asked(history())).await;
    assert!(matches!(spoken.stop_reason, StopReason::EndTurn | StopReason::MaxTokens), "{spoken:?}");
    assert_eq!(provider.describe().model, model.id);
    let short = answer(&provider, ModelRequest { max_output_tokens: Some(1), ..asked(history()) }).await;
    assert!(short.usage.output_tokens <= 1, "{short:?}");

    let must = ModelRequest { tools: [picking()].into(), tool_choice: ToolChoice::Required, ..asked(history()) };
    let called = answer(&provider, must.clone()).await;
    assert!(is_colour(&picked(&called)), "{called:?}");
    // The call goes back with its result, in the ids of the server.
    let mut next = must;
    next.push(Message::assistant(&called.text, called.tool_calls.clone()));
    for call in &called.tool_calls {
        next.push(Message::tool_result(&call.id, &call.name, "taken"));
    }
    picked(&answer(&provider, next).await);

    let output = OutputShape::Json { name: "choice".to_owned(), schema: colour() };
    let document = answer(&provider, ModelRequest { output, ..asked(history()) }).await;
    assert!(is_colour(&serde_json::from_str(&document.text).unwrap()), "{document:?}");
}

#[tokio::test]
async fn responses_stream_text_and_calls() {
    let llama = start();
    let provider = responses(&llama);
    assert_eq!(provider.models().await.unwrap().len(), 1);
    let spoken = answer(&provider, asked(history())).await;
    assert!(matches!(spoken.stop_reason, StopReason::EndTurn | StopReason::MaxTokens), "{spoken:?}");

    let must = ModelRequest { tools: [picking()].into(), tool_choice: ToolChoice::Required, ..asked(history()) };
    let called = answer(&provider, must.clone()).await;
    assert!(is_colour(&picked(&called)), "{called:?}");
    let mut next = must;
    next.push(Message::assistant(&called.text, called.tool_calls.clone()).with_reasoning(called.reasoning));
    for call in &called.tool_calls {
        next.push(Message::tool_result(&call.id, &call.name, "taken"));
    }
    picked(&answer(&provider, next).await);
}

#[tokio::test]
async fn refusals_of_a_real_server_are_understood() {
    let llama = start();
    let long = Message::user("x ".repeat(20_000));
    for provider in [Box::new(provider(&llama)) as Box<dyn ModelProvider>, Box::new(responses(&llama))] {
        let error = provider.stream(asked(vec![long.clone()])).await.map(|_| ()).unwrap_err();
        assert_eq!(error.class, ModelErrorClass::ContextTooLong, "{error}");
    }
    let options = HttpProviderOptions {
        base_url: Some(format!("{}/nowhere", llama.address())),
        model: Some("tiny".to_owned()),
        ..HttpProviderOptions::new("llama")
    };
    let lost = OpenAiCompatible::new(options).unwrap();
    let error = lost.stream(asked(history())).await.map(|_| ()).unwrap_err();
    assert_eq!(error.class, ModelErrorClass::Permanent, "{error}");
    assert!(error.message.contains("check the base URL"), "{error}");
}

#[tokio::test]
async fn hanging_up_stops_a_real_server() {
    let llama = start();
    let provider = provider(&llama);
    for _ in 0..4 {
        let endless = ModelRequest { max_output_tokens: None, ..asked(vec![Message::user("go on")]) };
        let mut stream = provider.stream(endless).await.unwrap();
        stream.next().await.unwrap().unwrap();
    }
    // The server has two places: the fifth call is only answered because those before have left theirs.
    answer(&provider, asked(history())).await;
}
