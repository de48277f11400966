//! The same faults on every wire: each run ends right, or fails with the class that says what it was.
//!
//! A wire is a provider and the way in which the scripted server speaks to it. Another provider is one more line in [`wires`].

use std::time::Duration;

use futures::StreamExt;
use palyra_common::SecretString;
use palyra_models::testing::{
    AnthropicWire, ChatWire, Fault, GeminiWire, ModelServer, OllamaWire, Reply, ResponsesWire, Wire,
};
use palyra_models::{
    Anthropic, AssembledTurn, Call, Gemini, HttpProviderOptions, ModelError, ModelErrorClass as Class, ModelEvent,
    ModelProvider, Ollama, OpenAi, OpenAiApi, OpenAiCompatible, OpenRouter, StopReason, Timeouts, Turn, TurnAssembler,
    Usage,
};
use serde_json::json;

use crate::support::request;

/// A provider for a server, as patient as it is told.
type Make = fn(HttpProviderOptions) -> Result<Box<dyn ModelProvider>, ModelError>;

/// The server's side of a wire.
type Speak = fn() -> Box<dyn Wire>;

/// Everything that has to stand the same tests.
fn wires() -> Vec<(&'static str, Speak, Make)> {
    vec![
        ("openai_compatible", || Box::new(ChatWire), |options| Ok(Box::new(OpenAiCompatible::new(options)?))),
        (
            "openai chat",
            || Box::new(ChatWire),
            |options| Ok(Box::new(OpenAi::with_api(options, OpenAiApi::ChatCompletions)?)),
        ),
        ("openai responses", || Box::new(ResponsesWire), |options| Ok(Box::new(OpenAi::new(options)?))),
        ("openrouter", || Box::new(ChatWire), |options| Ok(Box::new(OpenRouter::new(options)?))),
        ("anthropic", || Box::new(AnthropicWire), |options| Ok(Box::new(Anthropic::new(options)?))),
        ("gemini", || Box::new(GeminiWire), |options| Ok(Box::new(Gemini::new(options)?))),
        ("ollama", || Box::new(OllamaWire), |options| Ok(Box::new(Ollama::new(options)?))),
    ]
}

/// Patience for a busy machine.
const PATIENT: Duration = Duration::from_secs(30);
/// Silence that counts as a time-out where a test is about that.
const IMPATIENT: Duration = Duration::from_millis(300);

fn options(server: &ModelServer, patience: Duration) -> HttpProviderOptions {
    HttpProviderOptions {
        base_url: Some(server.base_url()),
        api_key: Some(SecretString::from("sk-hunter2".to_owned())),
        credential: Some("first".to_owned()),
        model: Some("m".to_owned()),
        timeouts: Timeouts { first_byte: patience, between_chunks: patience, ..Timeouts::default() },
        ..HttpProviderOptions::new("configured")
    }
}

async fn answer(provider: &dyn ModelProvider) -> Result<AssembledTurn, ModelError> {
    let mut stream = provider.stream(request()).await?;
    let mut assembler = TurnAssembler::new();
    let mut events = 0;
    while let Some(event) = stream.next().await {
        let event = event?;
        assert_eq!(matches!(event, ModelEvent::Answering(_)), events == 0, "who answers comes first and once");
        assembler.push(&event)?;
        events += 1;
    }
    assert!(assembler.is_finished(), "a stream without error must end with Finished");
    Ok(assembler.finish())
}

fn turn() -> Turn {
    Turn {
        text: vec!["Hel".to_owned(), "lo 🦀".to_owned()],
        calls: vec![
            Call::new("palyra.fs.read", json!({"path": "grüße.txt"})),
            Call::new("palyra.fs.list", json!({"depth": 2})),
        ],
        usage: Some(Usage::plain(11, 5)),
        ..Turn::default()
    }
}

fn reply() -> Reply {
    Reply::turn(&turn(), 0, &[])
}

/// The calls of the turn above.
fn assert_calls(turn: &AssembledTurn, name: &str) {
    let calls: Vec<_> = turn.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    let expected = [("palyra.fs.read", r#"{"path":"grüße.txt"}"#), ("palyra.fs.list", r#"{"depth":2}"#)];
    assert_eq!(calls, expected, "{name}");
    assert_eq!(turn.stop_reason, StopReason::ToolUse, "{name}");
    assert_eq!(turn.usage, Usage::plain(11, 5), "{name}");
}

/// What has to come of a fault.
enum Outcome {
    /// The calls arrive whole; the text too, unless the wire cannot tell a repetition from a fault.
    Right,
    /// An error of this class, with this wait, whose line has this in it.
    Fails(Class, Option<u64>, &'static str),
}

fn faults() -> Vec<(&'static str, Duration, Reply, Outcome)> {
    let busy = || Reply::status(429, &json!({"error": {"message": "slow down"}}));
    let year = "Tue, 01 Jan 2002 00:00:07 GMT";
    vec![
        ("429", PATIENT, busy(), Outcome::Fails(Class::RateLimit, None, "slow down")),
        (
            "429 with a wait",
            PATIENT,
            busy().header("retry-after", "7"),
            Outcome::Fails(Class::RateLimit, Some(7000), "slow down"),
        ),
        (
            "429 with a wait, by a clock that is off by decades",
            PATIENT,
            busy().header("date", "Tue, 01 Jan 2002 00:00:00 GMT").header("retry-after", year),
            Outcome::Fails(Class::RateLimit, Some(7000), "slow down"),
        ),
        (
            "500",
            PATIENT,
            Reply::status(500, &json!({"error": {"message": "oops"}})),
            Outcome::Fails(Class::Transient, None, "answered 500: oops"),
        ),
        (
            "reset in a chunk",
            PATIENT,
            reply().fault(Fault::ResetAfter(700)),
            Outcome::Fails(Class::Network, None, "broke"),
        ),
        (
            "end in a chunk",
            PATIENT,
            reply().fault(Fault::CloseAfter(700)),
            Outcome::Fails(Class::Network, None, "broke"),
        ),
        (
            "reset before the answer",
            PATIENT,
            reply().fault(Fault::CloseBeforeAnswer),
            Outcome::Fails(Class::Network, None, "cannot reach"),
        ),
        (
            "truncated JSON",
            PATIENT,
            reply().fault(Fault::TruncateEvent),
            Outcome::Fails(Class::Malformed, None, "not JSON"),
        ),
        ("every event twice", PATIENT, reply().fault(Fault::RepeatEvents), Outcome::Right),
        (
            "silence at the start",
            IMPATIENT,
            reply().fault(Fault::SilentAfter(0)),
            Outcome::Fails(Class::Timeout, None, "no first byte"),
        ),
        (
            "silence in the middle",
            IMPATIENT,
            reply().fault(Fault::SilentAfter(700)),
            Outcome::Fails(Class::Timeout, None, "between two parts"),
        ),
        ("another content type", PATIENT, reply().content_type("text/html"), Outcome::Right),
        (
            "a web page",
            PATIENT,
            Reply::raw("<!doctype html><title>hi</title>").content_type("text/html"),
            Outcome::Fails(Class::Permanent, None, "no model server"),
        ),
        (
            "a huge event",
            PATIENT,
            reply().fault(Fault::HugeEvent(9 * 1024 * 1024)),
            Outcome::Fails(Class::Malformed, None, "larger than 8 MiB"),
        ),
        ("no UTF-8", PATIENT, reply().fault(Fault::InvalidUtf8), Outcome::Fails(Class::Malformed, None, "UTF-8")),
        ("nothing at all", PATIENT, Reply::raw(""), Outcome::Fails(Class::Network, None, "without an answer")),
    ]
}

#[tokio::test]
async fn every_fault_on_every_wire_ends_right_or_with_the_right_class() {
    let mut tried = 0;
    for (wire, speaks, make) in wires() {
        for (fault, patience, reply, outcome) in faults() {
            let name = format!("{wire}: {fault}");
            let server = ModelServer::speaking(vec![speaks()], vec![reply]).unwrap();
            let provider = make(options(&server, patience)).unwrap();
            let ended = answer(provider.as_ref()).await;
            match (outcome, ended) {
                (Outcome::Right, Ok(turn)) => assert_calls(&turn, &name),
                (Outcome::Fails(class, wait, line), Err(error)) => {
                    assert_eq!((error.class, error.retry_after_ms), (class, wait), "{name}: {error}");
                    assert!(error.message.contains(line), "{name}: {error}");
                }
                (_, ended) => panic!("{name}: {ended:?}"),
            }
            assert_eq!(server.requests().len(), 1, "{name}: one call is one request");
            tried += 1;
        }
    }
    assert!(tried >= 16 * 7, "{tried}");
}

#[tokio::test]
async fn a_whole_answer_comes_through_every_wire_and_says_who_answered() {
    for (wire, speaks, make) in wires() {
        for reply in [reply(), reply().as_document()] {
            let server = ModelServer::speaking(vec![speaks()], vec![reply]).unwrap();
            let provider = make(options(&server, PATIENT)).unwrap();
            let turn = answer(provider.as_ref()).await.unwrap();
            assert_eq!(turn.text, "Hello 🦀", "{wire}");
            assert_calls(&turn, wire);
            let answering = turn.answering.unwrap();
            assert_eq!((answering.provider.as_str(), answering.model.as_str()), ("configured", "m"), "{wire}");
            assert_eq!(answering.credential.as_deref(), Some("first"), "{wire}");
        }
    }
}

#[tokio::test]
async fn a_large_answer_is_no_fault() {
    let large = "x".repeat(1024 * 1024);
    for (wire, speaks, make) in wires() {
        let reply = Reply::text(&[&large, "end"]);
        let server = ModelServer::speaking(vec![speaks()], vec![reply]).unwrap();
        let turn = answer(make(options(&server, PATIENT)).unwrap().as_ref()).await.unwrap();
        assert_eq!(turn.text.len(), large.len() + 3, "{wire}");
    }
}

#[tokio::test]
async fn hanging_up_closes_the_connection_at_once() {
    for (wire, speaks, make) in wires() {
        let reply = Reply::text(&["word "; 60]).fault(Fault::SilentAfter(2000));
        let server = ModelServer::speaking(vec![speaks()], vec![reply]).unwrap();
        let provider = make(options(&server, PATIENT)).unwrap();
        let mut stream = provider.stream(request()).await.unwrap();
        stream.next().await.unwrap().unwrap();
        drop(stream);
        let gone = tokio::task::spawn_blocking(move || {
            // The server notices by itself; the bound only keeps a defect from hanging the test.
            (0..500).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                server.abandoned() == 1
            })
        });
        assert!(gone.await.unwrap(), "{wire}");
    }
}

#[tokio::test]
async fn giving_up_before_the_first_event_hangs_up_too() {
    for (wire, speaks, make) in wires() {
        let reply = Reply::text(&["late"]).fault(Fault::SilentAfter(0));
        let server = ModelServer::speaking(vec![speaks()], vec![reply]).unwrap();
        let provider = make(options(&server, PATIENT)).unwrap();
        let waited = tokio::time::timeout(IMPATIENT, provider.stream(request())).await;
        assert!(waited.is_err(), "{wire}");
        let gone = tokio::task::spawn_blocking(move || {
            (0..500).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                server.abandoned() == 1
            })
        });
        assert!(gone.await.unwrap(), "{wire}");
    }
}

#[tokio::test]
async fn the_whole_call_has_a_clock_of_its_own() {
    for (wire, speaks, make) in wires() {
        let deltas = vec!["x"; 100];
        let reply = Reply::text(&deltas).delay(Duration::from_millis(50));
        let server = ModelServer::speaking(vec![speaks()], vec![reply]).unwrap();
        let mut options = options(&server, PATIENT);
        options.timeouts.total = IMPATIENT;
        let error = answer(make(options).unwrap().as_ref()).await.unwrap_err();
        assert_eq!(error.class, Class::Timeout, "{wire}: {error}");
        assert!(error.message.contains("in total") || error.message.contains("first byte"), "{wire}: {error}");
    }
}

#[tokio::test]
async fn wrong_keys_and_models_get_a_line_that_says_what_to_do() {
    let table = [
        (
            401,
            json!({"error": {"message": "bad key sk-hunter2"}}),
            Class::Auth,
            "does not accept the key (401): bad key [redacted]",
        ),
        (
            404,
            json!({"error": {"message": "The model `m` does not exist"}}),
            Class::Permanent,
            "does not offer the model `m` (404)",
        ),
        (404, json!({"detail": "Not Found"}), Class::Permanent, "check the base URL"),
    ];
    for (wire, speaks, make) in wires() {
        for (status, body, class, line) in &table {
            let server = ModelServer::speaking(vec![speaks()], vec![Reply::status(*status, body)]).unwrap();
            let error = answer(make(options(&server, PATIENT)).unwrap().as_ref()).await.unwrap_err();
            assert_eq!(error.class, *class, "{wire}: {error}");
            assert!(error.message.contains(line) && !error.message.contains("hunter2"), "{wire}: {error}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_was_given_up_costs_nothing() {
    for (wire, speaks, make) in wires() {
        let gone = Reply::text(&["never seen"]).fault(Fault::CloseBeforeAnswer);
        let replies = vec![Reply::text(&["one"]), gone.clone(), Reply::text(&["two"]), gone.clone(), gone];
        let server = ModelServer::speaking(vec![speaks()], replies).unwrap();
        let provider = make(options(&server, PATIENT)).unwrap();
        for text in ["one", "two"] {
            assert_eq!(answer(provider.as_ref()).await.unwrap().text, text, "{wire}");
        }
        // Once more, and no more than once.
        let error = answer(provider.as_ref()).await.unwrap_err();
        assert_eq!((error.class, server.requests().len()), (Class::Network, 5), "{wire}: {error}");
    }
}
