//! A provider that talks to a scripted server, and whole answers from it.

use std::time::Duration;

use futures::StreamExt;
use palyra_common::{RunId, SecretString};
use palyra_models::testing::{ModelServer, Reply};
use palyra_models::{
    AssembledTurn, Message, ModelError, ModelProvider, ModelRequest, OpenAiCompatible, OpenAiCompatibleOptions,
    Purpose, RetryPolicy, ToolSpec, TurnAssembler,
};
use serde_json::json;

/// Silence that counts as a time-out where a test is about that.
pub(crate) const SHORT: Duration = Duration::from_secs(1);

/// Options with short pauses between tries, and patience for a busy machine.
pub(crate) fn options(server: &ModelServer) -> OpenAiCompatibleOptions {
    OpenAiCompatibleOptions {
        api_key: Some(SecretString::from("sk-hunter2".to_owned())),
        model: Some("m".to_owned()),
        idle_timeout: Duration::from_secs(30),
        retry: RetryPolicy {
            attempts: 3,
            first_wait: Duration::from_millis(2),
            longest_wait: Duration::from_millis(50),
        },
        ..OpenAiCompatibleOptions::new(server.base_url())
    }
}

/// A server with these replies and a provider for it.
pub(crate) fn pair(replies: Vec<Reply>) -> (ModelServer, OpenAiCompatible) {
    let server = ModelServer::start(replies).unwrap();
    let provider = OpenAiCompatible::new(options(&server)).unwrap();
    (server, provider)
}

/// The same with a provider that takes a short silence for a time-out.
pub(crate) fn impatient_pair(replies: Vec<Reply>) -> (ModelServer, OpenAiCompatible) {
    let server = ModelServer::start(replies).unwrap();
    let options = OpenAiCompatibleOptions { idle_timeout: SHORT, ..options(&server) };
    let provider = OpenAiCompatible::new(options).unwrap();
    (server, provider)
}

/// A request with one tool.
pub(crate) fn request() -> ModelRequest {
    let messages = vec![Message::system("be good"), Message::user("read a.txt")];
    ModelRequest {
        tools: [ToolSpec {
            name: "palyra.fs.read".to_owned(),
            description: "Reads a file".to_owned(),
            input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}).into(),
        }]
        .into(),
        max_output_tokens: Some(100),
        ..ModelRequest::new(RunId::from_u128(1), 1, Purpose::Turn, messages)
    }
}

/// The whole answer.
pub(crate) async fn answer(provider: &OpenAiCompatible) -> Result<AssembledTurn, ModelError> {
    let mut stream = provider.stream(request()).await?;
    let mut assembler = TurnAssembler::new();
    while let Some(event) = stream.next().await {
        assembler.push(&event?)?;
    }
    assert!(assembler.is_finished(), "a stream without error must end with Finished");
    Ok(assembler.finish())
}
