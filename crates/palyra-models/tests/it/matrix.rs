//! Every server against everything that a run does with one, with the whole default tool list; the outcome is the table in
//! `docs/model-wires.md`.
//!
//! A row is a test that tries each column in turn and fails at the first surprise, so a cell says `yes` because it ran. The test then compares
//! its row with the page; with `PALYRA_UPDATE=1` it writes it instead.

use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use palyra_common::{RunId, SecretString};
use palyra_models::{
    Anthropic, AssembledTurn, HttpProviderOptions, Message, ModelError, ModelErrorClass, ModelEvent, ModelProvider,
    ModelRequest, OpenAi, OpenAiCompatible, Purpose, StopReason, Timeouts, ToolCallRequest, ToolChoice, TurnAssembler,
    default_tools,
};

use crate::aimock::{self, Spoken};
use crate::llama::{self, Llama, Weights};

const COLUMNS: [&str; 7] =
    ["plain", "streamed", "tool call", "tool result", "refusal", "context exceeded", "killed in mid-answer"];
const BEGIN: &str = "<!-- Written by the tests of palyra-models (PALYRA_UPDATE=1 cargo nextest run -p palyra-models matrix); do not edit. -->";
const END: &str = "<!-- End of the table. -->";
/// The key that llama.cpp is started with.
const KEY: &str = "sk-llama";
/// A tool without arguments that have to be given.
const TIME: &str = "palyra.time.now";

/// A wire of llama.cpp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LlamaWire {
    Chat,
    Responses,
    Messages,
}

impl LlamaWire {
    const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Messages];

    fn row(self, weights: Weights) -> String {
        let weights = match weights {
            Weights::Random => "random weights",
            Weights::Real => "SmolLM2, tool template",
        };
        let wire = match self {
            Self::Chat => "chat completions",
            Self::Responses => "Responses",
            Self::Messages => "Anthropic Messages",
        };
        format!("llama.cpp, {weights}: {wire}")
    }

    fn provider(self, server: &Llama, key: &str) -> Box<dyn ModelProvider> {
        let options = HttpProviderOptions {
            api_key: Some(SecretString::from(key.to_owned())),
            model: Some("m".to_owned()),
            // A real model reads the whole tool list before its first word, on a machine that may be busy.
            timeouts: Timeouts {
                first_byte: Duration::from_secs(800),
                between_chunks: Duration::from_secs(300),
                ..Timeouts::default()
            },
            ..HttpProviderOptions::new("llama")
        };
        let at = |base_url: String| HttpProviderOptions { base_url: Some(base_url), ..options };
        match self {
            Self::Chat => Box::new(OpenAiCompatible::new(at(server.base_url())).unwrap()),
            Self::Responses => Box::new(OpenAi::new(at(server.base_url())).unwrap()),
            Self::Messages => Box::new(Anthropic::new(at(server.address().to_owned())).unwrap()),
        }
    }
}

fn aimock_row(wire: Spoken) -> String {
    let name = match wire {
        Spoken::Chat => "chat completions",
        Spoken::Responses => "OpenAI Responses",
        Spoken::Anthropic => "Anthropic Messages",
        Spoken::Gemini => "Gemini",
        Spoken::Ollama => "Ollama",
        Spoken::OpenRouter => "OpenRouter",
    };
    format!("aimock: {name}")
}

/// A request with every tool there is.
fn asked(words: &str, tool_choice: ToolChoice, most: u32) -> ModelRequest {
    ModelRequest {
        tools: default_tools().into(),
        tool_choice,
        max_output_tokens: Some(most),
        ..ModelRequest::new(
            RunId::from_u128(1),
            1,
            Purpose::Turn,
            vec![Message::system("Be brief."), Message::user(words)],
        )
    }
}

/// A question after several that were answered through a tool. llama.cpp asks for a call with `tool_choice`, it does not force one, and a model this
/// small calls only what it has just seen called.
fn practised() -> ModelRequest {
    let mut request = asked("What time is it?", ToolChoice::Required, 96);
    for minute in 0..6 {
        let id = format!("call_{minute}");
        let call = ToolCallRequest { id: id.clone(), name: TIME.to_owned(), arguments: "{}".to_owned() };
        request.push(Message::assistant("", vec![call]));
        request.push(Message::tool_result(&id, TIME, format!("2026-01-01T12:0{minute}:00Z")));
        request.push(Message::assistant(format!("It is 12:0{minute}."), Vec::new()));
        request.push(Message::user("What time is it?"));
    }
    request
}

/// What came of a call: its turn, and in how many pieces it came.
async fn turn(provider: &dyn ModelProvider, request: ModelRequest) -> (AssembledTurn, usize) {
    let mut stream = provider.stream(request).await.unwrap();
    let (mut assembler, mut pieces) = (TurnAssembler::new(), 0);
    while let Some(event) = stream.next().await {
        let event = event.unwrap();
        pieces += usize::from(matches!(event, ModelEvent::TextDelta(_) | ModelEvent::ToolCallDelta { .. }));
        assembler.push(&event).unwrap();
    }
    assert!(assembler.is_finished());
    (assembler.finish(), pieces)
}

async fn refused(provider: &dyn ModelProvider, request: ModelRequest) -> ModelError {
    match provider.stream(request).await {
        Err(error) => error,
        Ok(mut stream) => loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("it was answered"),
            }
        },
    }
}

/// A call and its result, which the model then answers.
async fn call_and_result(provider: &dyn ModelProvider, request: ModelRequest, next: ToolChoice) {
    let (called, _) = turn(provider, request.clone()).await;
    assert!(matches!(called.stop_reason, StopReason::ToolUse | StopReason::MaxTokens), "{called:?}");
    assert!(!called.tool_calls.is_empty(), "{called:?}");
    for call in &called.tool_calls {
        // Noise may be cut in the middle of a name.
        let known = default_tools().iter().any(|tool| tool.name == call.name);
        assert!(!call.id.is_empty() && (known || called.stop_reason == StopReason::MaxTokens), "{call:?}");
    }
    let mut request = ModelRequest { tool_choice: next, turn: 2, ..request };
    request.push(Message::assistant(&called.text, called.tool_calls.clone()).with_reasoning(called.reasoning));
    for call in &called.tool_calls {
        request.push(Message::tool_result(&call.id, &call.name, "2026-01-01T12:00:00Z"));
    }
    let (answer, _) = turn(provider, request).await;
    assert_ne!(answer.stop_reason, StopReason::ContentFilter, "{answer:?}");
}

/// Begins to listen, ends the server, and wants to be told: half an answer never looks like a whole one.
async fn killed(provider: &dyn ModelProvider, request: ModelRequest, kill: impl FnOnce()) {
    let mut stream = provider.stream(request).await.unwrap();
    loop {
        let event = stream.next().await.unwrap().unwrap();
        if matches!(event, ModelEvent::TextDelta(_) | ModelEvent::ToolCallDelta { .. } | ModelEvent::ReasoningDelta(_))
        {
            break;
        }
    }
    kill();
    let error = loop {
        match stream.next().await {
            Some(Ok(event)) => assert!(!matches!(event, ModelEvent::Finished(_)), "it was taken for a whole answer"),
            Some(Err(error)) => break error,
            None => panic!("it ended without a word"),
        }
    };
    assert!(matches!(error.class, ModelErrorClass::Network | ModelErrorClass::Malformed), "{error}");
}

async fn start(weights: Weights, window: u32) -> Llama {
    tokio::task::spawn_blocking(move || llama::start_with(weights, window, 1, Some(KEY))).await.unwrap()
}

/// All wires of one llama.cpp server. They share it, so that the tool list is read once; only who is killed needs another.
async fn llama_rows(weights: Weights, window: u32) {
    let server = start(weights, window).await;
    for wire in LlamaWire::ALL {
        let provider = wire.provider(&server, KEY);
        let (plain, _) = turn(&*provider, asked("Say hello.", ToolChoice::Auto, 24)).await;
        assert!(plain.usage.input_tokens > 1000 && plain.usage.output_tokens > 0, "{plain:?}");
        // Left to itself noise may end at once; a call it has to finish.
        let choice = if weights == Weights::Real { ToolChoice::Forbidden } else { ToolChoice::Required };
        let (_, pieces) = turn(&*provider, asked("Count to ten.", choice, 64)).await;
        assert!(pieces > 1, "{wire:?}: it came in one piece");
        let request = match weights {
            Weights::Random => asked("What time is it?", ToolChoice::Required, 400),
            Weights::Real => practised(),
        };
        call_and_result(&*provider, request, ToolChoice::Auto).await;
        let wrong_key = wire.provider(&server, "sk-wrong");
        let refusal = refused(&*wrong_key, asked("Say hello.", ToolChoice::Auto, 1)).await;
        assert_eq!((refusal.class, refusal.status), (ModelErrorClass::Auth, Some(401)), "{wire:?}: {refusal}");
        let long = refused(&*provider, asked(&"word ".repeat(60_000), ToolChoice::Auto, 1)).await;
        assert_eq!(long.class, ModelErrorClass::ContextTooLong, "{wire:?}: {long}");
    }
    drop(server);
    for wire in LlamaWire::ALL {
        let mut server = start(weights, window).await;
        let provider = wire.provider(&server, KEY);
        let endless = asked("Call every tool that there is.", ToolChoice::Required, 2_000);
        killed(&*provider, endless, || server.kill()).await;
        record(&wire.row(weights));
    }
}

/// The whole list is 18,000 tokens to a model that reads letter by letter.
#[tokio::test]
async fn llama_cpp_with_random_weights() {
    llama_rows(Weights::Random, 40_960).await;
}

#[tokio::test]
async fn llama_cpp_with_a_real_model() {
    llama_rows(Weights::Real, 8_192).await;
}

async fn aimock_rows(wires: &[Spoken]) {
    for &wire in wires {
        let mut server = tokio::task::spawn_blocking(aimock::start).await.unwrap();
        let provider = wire.provider(&server, aimock::KEY);
        let ask = |words: &str| asked(words, ToolChoice::Auto, 2_000);
        let (plain, pieces) = turn(&*provider, ask("say hello")).await;
        assert_eq!(plain.text, "Hello from outside: grüße, 世界 🌍.", "{wire:?}");
        assert!(pieces > 1, "{wire:?}: it came in one piece");
        call_and_result(&*provider, ask("call one"), ToolChoice::Auto).await;
        let refusal = refused(&*provider, ask("bad key")).await;
        assert_eq!((refusal.class, refusal.status), (ModelErrorClass::Auth, Some(401)), "{wire:?}: {refusal}");
        let long = refused(&*provider, ask(wire.words_for_too_long())).await;
        assert_eq!(long.class, ModelErrorClass::ContextTooLong, "{wire:?}: {long}");
        killed(&*provider, ask("speak slowly"), || server.kill()).await;
        record(&aimock_row(wire));
    }
}

#[tokio::test]
async fn aimock_with_the_wires_of_openai() {
    aimock_rows(&[Spoken::Chat, Spoken::Responses, Spoken::OpenRouter]).await;
}

#[tokio::test]
async fn aimock_with_the_wires_of_others() {
    aimock_rows(&[Spoken::Anthropic, Spoken::Gemini, Spoken::Ollama]).await;
}

/// Every row, in the order of the page.
fn rows() -> Vec<String> {
    let llama =
        [Weights::Random, Weights::Real].into_iter().flat_map(|weights| LlamaWire::ALL.map(|wire| wire.row(weights)));
    llama.chain(Spoken::ALL.map(aimock_row)).collect()
}

fn line(row: &str) -> String {
    format!("| {row} | {} |", COLUMNS.map(|_| "yes").join(" | "))
}

/// The row whose columns have all been tried stands on the page, or is put there.
fn record(row: &str) {
    assert!(rows().iter().any(|known| known == row), "`{row}` is no row of the table");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/model-wires.md");
    let update = std::env::var_os("PALYRA_UPDATE").is_some();
    let mut page = std::fs::OpenOptions::new().read(true).write(update).open(path).unwrap();
    if update {
        // Rows are written by several processes.
        page.lock().unwrap();
    }
    let mut text = String::new();
    page.read_to_string(&mut text).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    if !update {
        assert!(
            table.contains(&line(row)),
            "docs/model-wires.md does not say `{}`; PALYRA_UPDATE=1 writes it",
            line(row)
        );
        return;
    }
    let known = |name: &String| name == row || table.contains(&line(name));
    let head = format!("| server | {} |\n|{}", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len() + 1));
    let lines: Vec<String> = rows().into_iter().filter(known).map(|name| line(&name)).collect();
    let text = format!("{before}{BEGIN}\n\n{head}\n{}\n\n{END}{after}", lines.join("\n"));
    page.set_len(0).unwrap();
    page.rewind().unwrap();
    page.write_all(text.as_bytes()).unwrap();
}

/// No row is missing and none is there that no test stands for.
#[test]
fn the_table_has_exactly_the_rows_that_are_tried() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/model-wires.md")).unwrap();
    let table = page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).unwrap().0;
    let found: Vec<&str> =
        table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| server")).collect();
    assert_eq!(found, rows().iter().map(|row| line(row)).collect::<Vec<_>>());
}
