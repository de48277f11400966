//! The same on every wire: whole answers however they are written down, clocks, hanging up, and the lines for mistakes.
//!
//! A wire is a provider and the way in which the scripted server speaks to it. Another provider is one more line in [`wires`].

use std::time::Duration;

use futures::StreamExt;
use palyra_common::SecretString;
use palyra_models::testing::{
    AnthropicWire, ChatWire, Delivery, Dress, Fault, GeminiWire, LineEnding, ModelServer, OllamaWire, Reply,
    ResponsesWire, Wire,
};
use palyra_models::{
    Anthropic, AssembledTurn, Call, Gemini, HttpProviderOptions, ModelError, ModelErrorClass as Class, ModelEvent,
    ModelProvider, Ollama, OpenAi, OpenAiApi, OpenAiCompatible, OpenRouter, StopReason, Timeouts, Turn, TurnAssembler,
    Usage,
};
use serde_json::json;

use crate::support::request;

/// A provider for a server, as patient as it is told.
pub(crate) type Make = fn(HttpProviderOptions) -> Result<Box<dyn ModelProvider>, ModelError>;

/// The server's side of a wire.
pub(crate) type Speak = fn() -> Box<dyn Wire>;

/// Everything that has to stand the same tests.
pub(crate) fn wires() -> Vec<(&'static str, Speak, Make)> {
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
pub(crate) const PATIENT: Duration = Duration::from_secs(30);
/// Silence that counts as a time-out where a test is about that.
pub(crate) const IMPATIENT: Duration = Duration::from_millis(300);

pub(crate) fn options(server: &ModelServer, patience: Duration) -> HttpProviderOptions {
    HttpProviderOptions {
        base_url: Some(server.base_url()),
        api_key: Some(SecretString::from("sk-hunter2".to_owned())),
        credential: Some("first".to_owned()),
        model: Some("m".to_owned()),
        timeouts: Timeouts { first_byte: patience, between_chunks: patience, ..Timeouts::default() },
        ..HttpProviderOptions::new("configured")
    }
}

pub(crate) async fn answer(provider: &dyn ModelProvider) -> Result<AssembledTurn, ModelError> {
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

pub(crate) fn reply() -> Reply {
    Reply::turn(&turn(), 0, &[])
}

/// The calls of the turn above.
pub(crate) fn assert_calls(turn: &AssembledTurn, name: &str) {
    let calls: Vec<_> = turn.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    let expected = [("palyra.fs.read", r#"{"path":"grüße.txt"}"#), ("palyra.fs.list", r#"{"depth":2}"#)];
    assert_eq!(calls, expected, "{name}");
    assert_eq!(turn.stop_reason, StopReason::ToolUse, "{name}");
    assert_eq!(turn.usage, Usage::plain(11, 5), "{name}");
}

#[tokio::test]
async fn every_way_of_writing_the_same_events_is_read_on_every_wire() {
    let dresses = [Dress::Comments, Dress::ByteOrderMark, Dress::Tight, Dress::TwoLines];
    let mut forms: Vec<Reply> = dresses.map(|dress| reply().dressed(dress)).into();
    forms.extend(dresses.map(|dress| reply().dressed(dress).line_ending(LineEnding::CrLf)));
    forms.push(reply().delivery(Delivery::Whole));
    forms.push(reply().delivery(Delivery::ByteByByte));
    forms.push(reply().delivery(Delivery::ByteByByte).line_ending(LineEnding::CrLf));
    forms.push(reply().without_done());
    for (wire, speaks, make) in wires() {
        for (number, form) in forms.iter().enumerate() {
            let server = ModelServer::speaking(vec![speaks()], vec![form.clone()]).unwrap();
            let provider = make(options(&server, PATIENT)).unwrap();
            let turn = answer(provider.as_ref()).await.unwrap_or_else(|error| panic!("{wire}, form {number}: {error}"));
            assert_eq!(turn.text, "Hello 🦀", "{wire}, form {number}");
            assert_calls(&turn, wire);
        }
    }
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
        assert!(error.message.contains("not complete after 0.3 seconds in total"), "{wire}: {error}");
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

/// An answer that ends, and a call of a tool behind its end, as each server would write them.
fn call_after_the_end(wire: &str) -> String {
    let events: Vec<serde_json::Value> = match wire {
        "openai_compatible" | "openai chat" | "openrouter" => vec![
            json!({"choices": [{"index": 0, "delta": {"content": "done"}}]}),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [
                {"index": 0, "id": "c", "type": "function", "function": {"name": "palyra_fs_write", "arguments": "{}"}}
            ]}}]}),
        ],
        "openai responses" => vec![
            json!({"type": "response.output_text.delta", "output_index": 0, "delta": "done"}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": [
                {"type": "message", "content": [{"type": "output_text", "text": "done"}]}
            ]}}),
            json!({"type": "response.output_item.done", "output_index": 1, "item":
                {"type": "function_call", "call_id": "c", "name": "palyra_fs_write", "arguments": "{}"}
            }),
        ],
        "anthropic" => vec![
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "done"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
            json!({"type": "content_block_start", "index": 1, "content_block":
                {"type": "tool_use", "id": "c", "name": "palyra_fs_write", "input": {}}
            }),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_stop"}),
        ],
        "gemini" => vec![
            json!({"candidates": [{"content": {"parts": [{"text": "done"}]}, "finishReason": "STOP"}]}),
            json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "palyra_fs_write", "args": {}}}]}}]}),
        ],
        "ollama" => vec![
            json!({"message": {"role": "assistant", "content": "done"}, "done": false}),
            json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"}),
            json!({"message": {"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "palyra_fs_write", "arguments": {}}}
            ]}, "done": true, "done_reason": "stop"}),
        ],
        other => panic!("`{other}` is not in the table"),
    };
    let (before, after) = if wire == "ollama" { ("", "\n") } else { ("data: ", "\n\n") };
    events.iter().map(|event| format!("{before}{event}{after}")).collect()
}

#[tokio::test]
async fn a_call_behind_the_end_of_an_answer_is_not_made() {
    for (wire, speaks, make) in wires() {
        for delivery in [Delivery::Whole, Delivery::ByteByByte] {
            let reply = Reply::raw(call_after_the_end(wire)).delivery(delivery);
            let server = ModelServer::speaking(vec![speaks()], vec![reply]).unwrap();
            let turn = answer(make(options(&server, PATIENT)).unwrap().as_ref()).await;
            let turn = turn.unwrap_or_else(|error| panic!("{wire}: {error}"));
            assert_eq!((turn.text.as_str(), turn.stop_reason), ("done", StopReason::EndTurn), "{wire}");
            assert_eq!(turn.tool_calls, [], "{wire}");
        }
    }
}

#[tokio::test]
async fn a_key_that_a_server_repeats_in_its_answer_is_masked() {
    const KEY: &str = "sk-0123456789abcdefghij";
    for (wire, speaks, make) in wires() {
        let said = Turn {
            text: vec!["your key: sk-01234".to_owned(), "56789abcdefghij.".to_owned()],
            calls: vec![Call::new("palyra.fs.write", json!({"path": "k", "content": KEY}))],
            usage: Some(Usage::plain(11, 5)),
            ..Turn::default()
        };
        let server = ModelServer::speaking(vec![speaks()], vec![Reply::turn(&said, 0, &[])]).unwrap();
        let options =
            HttpProviderOptions { api_key: Some(SecretString::from(KEY.to_owned())), ..options(&server, PATIENT) };
        let turn = answer(make(options).unwrap().as_ref()).await.unwrap_or_else(|error| panic!("{wire}: {error}"));
        assert_eq!(turn.text, "your key: [redacted].", "{wire}");
        assert_eq!(turn.tool_calls[0].arguments.replace(' ', ""), r#"{"path":"k","content":"[redacted]"}"#, "{wire}");
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
