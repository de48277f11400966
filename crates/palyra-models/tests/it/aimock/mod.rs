//! aimock, a server of several vendors' wires that nobody here wrote: what our side makes of what it sends, and it of what we send.
//!
//! It comes from npm by `scripts/clients/setup.sh aimock`, once per machine. `tests/aimock/serve.mjs` says what is answered to which words. It is
//! strict: it refuses requests that the vendors would refuse, such as a call whose thought was not given back.

mod answers;
mod refusals;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use palyra_common::{RunId, SecretString};
use palyra_models::{
    Anthropic, AssembledTurn, Gemini, HttpProviderOptions, Message, ModelProvider, ModelRequest, Ollama, OpenAi,
    OpenAiCompatible, OpenRouter, Purpose, ToolSpec, TurnAssembler,
};
use serde_json::json;

use crate::vendors::ask;

/// The one key that the server accepts.
pub(crate) const KEY: &str = "sk-outside";

/// A running server. Dropping it ends it.
pub(crate) struct Outside {
    process: Child,
    address: String,
}

impl Outside {
    /// Ends the server at once, in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // It would leave by itself once its standard input closes; this is quicker.
        self.kill();
    }
}

/// Starts a server and waits until it answers.
pub(crate) fn start() -> Outside {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new("bash").arg(here.join("../../scripts/clients/setup.sh")).arg("aimock").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let packages = String::from_utf8(made.stdout).unwrap();
    let mut process = Command::new("node")
        .arg(here.join("tests/aimock/serve.mjs"))
        .arg(packages.trim())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let address = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("listening ").map(str::to_owned));
    let address = address.unwrap_or_else(|| panic!("the server did not start: {:?}", process.wait()));
    Outside { process, address }
}

/// A wire that the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    Chat,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
    OpenRouter,
}

impl Spoken {
    pub(crate) const ALL: [Self; 6] =
        [Self::Chat, Self::Responses, Self::Anthropic, Self::Gemini, Self::Ollama, Self::OpenRouter];

    /// The words at which the server says in the vendor's way that a conversation is too long.
    pub(crate) fn words_for_too_long(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses | Self::OpenRouter => "long for openai",
            Self::Anthropic => "long for anthropic",
            Self::Gemini => "long for gemini",
            Self::Ollama => "long for ollama",
        }
    }

    pub(crate) fn provider(self, server: &Outside, key: &str) -> Box<dyn ModelProvider> {
        let (path, model) = match self {
            Self::Chat => ("", "gpt-5"),
            Self::Responses => ("/v1", "gpt-5"),
            Self::Anthropic => ("", "claude-opus-5-5"),
            Self::Gemini => ("", "gemini-3.5-flash"),
            Self::Ollama => ("", "qwen3"),
            Self::OpenRouter => ("/api/v1", "openai/gpt-5"),
        };
        let options = HttpProviderOptions {
            base_url: Some(format!("{}{path}", server.address)),
            api_key: Some(SecretString::from(key.to_owned())),
            model: Some(model.to_owned()),
            ..HttpProviderOptions::new("outside")
        };
        match self {
            Self::Chat => Box::new(OpenAiCompatible::new(options).unwrap()),
            Self::Responses => Box::new(OpenAi::new(options).unwrap()),
            Self::Anthropic => Box::new(Anthropic::new(options).unwrap()),
            Self::Gemini => Box::new(Gemini::new(options).unwrap()),
            Self::Ollama => Box::new(Ollama::new(options).unwrap()),
            Self::OpenRouter => Box::new(OpenRouter::new(options).unwrap()),
        }
    }
}

/// A request of these words, with two tools whose names no wire takes as they are.
fn request(words: &str) -> ModelRequest {
    let tool = |name: &str, field: &str| ToolSpec {
        name: name.to_owned(),
        description: format!("Takes a {field}"),
        input_schema: json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}).into(),
    };
    ModelRequest {
        tools: [tool("palyra.time.now", "zone"), tool("palyra.fs.read", "path")].into(),
        max_output_tokens: Some(20_000),
        ..ModelRequest::new(
            RunId::from_u128(1),
            1,
            Purpose::Turn,
            vec![Message::system("be brief"), Message::user(words)],
        )
    }
}

/// A whole answer, which has to end in order.
async fn answer(provider: &dyn ModelProvider, request: ModelRequest) -> AssembledTurn {
    let (events, error) = ask(provider, request).await;
    assert!(error.is_none(), "{error:?}");
    let mut assembler = TurnAssembler::new();
    for event in &events {
        assembler.push(event).unwrap();
    }
    let turn = assembler.finish();
    assert!(turn.repairs.is_empty(), "{turn:?}");
    turn
}

/// The request after this turn: what the model said, and what each of its calls gave.
fn after(mut request: ModelRequest, turn: &AssembledTurn, results: &[&str]) -> ModelRequest {
    request.turn += 1;
    request.push(Message::assistant(&turn.text, turn.tool_calls.clone()).with_reasoning(turn.reasoning.clone()));
    assert_eq!(turn.tool_calls.len(), results.len(), "{turn:?}");
    for (call, result) in turn.tool_calls.iter().zip(results) {
        request.push(Message::tool_result(&call.id, &call.name, *result));
    }
    request
}
