//! The wires of Anthropic, Gemini and Ollama against what their documentation says that they send and take.
//!
//! A folder of fixtures for each vendor, read by table tests; `COVERAGE.md` in each says what is covered and what is passed
//! over on purpose. Everything goes over real sockets through the scripted server, so that what is tested is the provider as it is used.

mod answers;
mod clients;
mod faults;
mod lists;
mod llama;
mod reasons;
mod refusals;
mod requests;
mod vectors;

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use palyra_common::SecretString;
use palyra_models::testing::{AnthropicWire, GeminiWire, ModelServer, OllamaWire, Reply, Wire};
use palyra_models::{
    Anthropic, Gemini, HttpProviderOptions, ModelError, ModelEvent, ModelProvider, ModelRequest, Ollama, Timeouts,
};
use serde_json::Value;

use crate::support;

/// Whose wire is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    Anthropic,
    Gemini,
    Ollama,
}

impl Vendor {
    const ALL: [Self; 3] = [Self::Anthropic, Self::Gemini, Self::Ollama];

    fn folder(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// A model of today.
    fn model(self) -> &'static str {
        match self {
            Self::Anthropic => "claude-opus-5-5",
            Self::Gemini => "gemini-3.5-flash",
            Self::Ollama => "qwen3",
        }
    }

    fn options(self, server: &ModelServer) -> HttpProviderOptions {
        let base_url = match self {
            Self::Anthropic | Self::Ollama => server.base_url(),
            Self::Gemini => server.base_url().replace("/v1", "/v1beta"),
        };
        HttpProviderOptions {
            base_url: Some(base_url),
            api_key: Some(SecretString::from("sk-hunter2".to_owned())),
            credential: Some("work".to_owned()),
            model: Some(self.model().to_owned()),
            timeouts: Timeouts { first_byte: Duration::from_secs(30), ..Timeouts::default() },
            ..HttpProviderOptions::new(self.folder())
        }
    }

    fn provider(self, options: HttpProviderOptions) -> Box<dyn ModelProvider> {
        match self {
            Self::Anthropic => Box::new(Anthropic::new(options).unwrap()),
            Self::Gemini => Box::new(Gemini::new(options).unwrap()),
            Self::Ollama => Box::new(Ollama::new(options).unwrap()),
        }
    }

    fn wire(self) -> Box<dyn Wire> {
        match self {
            Self::Anthropic => Box::new(AnthropicWire),
            Self::Gemini => Box::new(GeminiWire),
            Self::Ollama => Box::new(OllamaWire),
        }
    }

    /// A server with these replies.
    fn server(self, replies: Vec<Reply>) -> ModelServer {
        ModelServer::speaking(vec![self.wire()], replies).unwrap()
    }

    /// A server with these replies and a provider for it.
    fn pair(self, replies: Vec<Reply>) -> (ModelServer, Box<dyn ModelProvider>) {
        let server = self.server(replies);
        let provider = self.provider(self.options(&server));
        (server, provider)
    }

    /// A good answer as the vendor streams it.
    fn good_answer(self) -> Vec<u8> {
        let name = if self == Self::Ollama { "text.ndjson" } else { "text.sse" };
        std::fs::read(fixtures(self, "answers").join(name)).unwrap()
    }
}

/// A folder of fixtures.
fn fixtures(vendor: Vendor, kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(vendor.folder()).join(kind)
}

/// The files in a folder with this ending, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    files.sort();
    files
}

fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The usual request with what a fixture says otherwise.
fn request(changes: Option<&Value>) -> ModelRequest {
    let mut request = serde_json::to_value(support::request()).unwrap();
    for (name, value) in changes.and_then(Value::as_object).into_iter().flatten() {
        request[name] = value.clone();
    }
    serde_json::from_value(request).unwrap()
}

/// Everything that a call gives, who answers left out, and its error if it has one.
pub(crate) async fn ask(provider: &dyn ModelProvider, request: ModelRequest) -> (Vec<ModelEvent>, Option<ModelError>) {
    let mut stream = match provider.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => events.push(event),
            Err(error) => {
                assert!(stream.next().await.is_none(), "nothing follows an error");
                return (events.split_off(1), Some(error));
            }
        }
    }
    assert!(matches!(events.first(), Some(ModelEvent::Answering(_))), "{events:?}");
    assert!(matches!(events.last(), Some(ModelEvent::Finished(_))), "{events:?}");
    (events.split_off(1), None)
}

/// The text of an answer.
fn text(events: &[ModelEvent]) -> String {
    let text = |event: &ModelEvent| match event {
        ModelEvent::TextDelta(text) => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}
