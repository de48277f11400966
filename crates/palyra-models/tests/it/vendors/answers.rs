//! Every recorded stream, cut into single bytes and in one piece, gives the events that stand beside it.
//!
//! `NAME.sse` or `NAME.ndjson` is what the server sends, `NAME.json` beside it holds the events that come of it, the class and a word of
//! the error if it ends with one, and what is special about the request.

use palyra_models::testing::{Delivery, Reply};
use palyra_models::{Answering, ModelEvent};
use serde_json::{Value, json};

use super::{Vendor, ask, files, fixtures, read_json, request};

async fn check(vendor: Vendor) {
    let folder = fixtures(vendor, "answers");
    let recorded = [files(&folder, ".sse"), files(&folder, ".ndjson"), files(&folder, ".document")].concat();
    assert!(recorded.len() > 5, "{}", folder.display());
    for path in recorded {
        let name = path.display();
        let bytes = std::fs::read(&path).unwrap();
        let expected = read_json(&path.with_extension("json"));
        for delivery in [Delivery::Whole, Delivery::ByteByByte] {
            let reply = Reply::raw(bytes.clone()).delivery(delivery);
            let (_server, provider) = vendor.pair(vec![reply]);
            let (events, error) = ask(provider.as_ref(), request(expected.get("request"))).await;
            assert_eq!(serde_json::to_value(&events).unwrap(), expected["events"], "{name} {delivery:?}");
            match (&error, expected.get("error")) {
                (None, None) => {}
                (Some(error), Some(wanted)) => {
                    assert_eq!(json!(error.class), wanted["class"], "{name}: {error}");
                    let says = wanted["says"].as_str().unwrap();
                    assert!(error.message.contains(says), "{name}: {error}");
                }
                (found, wanted) => panic!("{name}: {found:?} instead of {wanted:?}"),
            }
        }
    }
}

#[tokio::test]
async fn anthropic_streams_are_understood() {
    check(Vendor::Anthropic).await;
}

#[tokio::test]
async fn gemini_streams_are_understood() {
    check(Vendor::Gemini).await;
}

#[tokio::test]
async fn ollama_streams_are_understood() {
    check(Vendor::Ollama).await;
}

#[tokio::test]
async fn an_answer_begins_with_who_gives_it() {
    for vendor in Vendor::ALL {
        let (server, provider) = vendor.pair(vec![Reply::raw(vendor.good_answer())]);
        let mut stream = provider.stream(request(Some(&json!({"model": "other-model"})))).await.unwrap();
        let first = futures::StreamExt::next(&mut stream).await.unwrap().unwrap();
        let answering = Answering {
            provider: provider.name().to_owned(),
            model: "other-model".to_owned(),
            credential: Some("work".to_owned()),
        };
        assert_eq!(first, ModelEvent::Answering(answering));
        assert_eq!(provider.describe().model, vendor.model());
        let sent = &server.requests()[0];
        assert!(!sent.path.contains("hunter2"), "keys never stand in a URL: {}", sent.path);
        let (header, value) = match vendor {
            Vendor::Anthropic => ("x-api-key", "sk-hunter2"),
            Vendor::Gemini => ("x-goog-api-key", "sk-hunter2"),
            Vendor::Ollama => ("authorization", "Bearer sk-hunter2"),
        };
        assert_eq!(sent.header(header), Some(value));
        let (path, version) = match vendor {
            Vendor::Anthropic => ("/v1/messages", Some("2023-06-01")),
            Vendor::Gemini => ("/v1beta/models/other-model:streamGenerateContent?alt=sse", None),
            Vendor::Ollama => ("/api/chat", None),
        };
        assert_eq!((sent.path.as_str(), sent.header("anthropic-version")), (path, version));
    }
}

/// What a turn thought goes back in the next one as it came.
#[tokio::test]
async fn thoughts_make_the_round_trip() {
    for (vendor, file) in [
        (Vendor::Anthropic, "thinking.sse"),
        (Vendor::Gemini, "thoughts_and_calls.sse"),
        (Vendor::Ollama, "thinking_and_calls.ndjson"),
    ] {
        let recorded = std::fs::read(fixtures(vendor, "answers").join(file)).unwrap();
        let (server, provider) = vendor.pair(vec![Reply::raw(recorded), Reply::raw(vendor.good_answer())]);
        let (events, error) = ask(provider.as_ref(), request(None)).await;
        assert!(error.is_none(), "{error:?}");
        let mut assembler = palyra_models::TurnAssembler::new();
        for event in &events {
            assembler.push(event).unwrap();
        }
        let turn = assembler.finish();
        let mut next = request(None);
        next.push(
            palyra_models::Message::assistant(&turn.text, turn.tool_calls.clone()).with_reasoning(turn.reasoning),
        );
        for call in &turn.tool_calls {
            next.push(palyra_models::Message::tool_result(&call.id, &call.name, "done"));
        }
        ask(provider.as_ref(), next).await;
        let sent = server.requests()[1].body.clone();
        let expected = read_json(&fixtures(vendor, "answers").join(file).with_extension("json"))["given_back"].clone();
        let given_back: Value = match vendor {
            Vendor::Anthropic => sent["messages"][1]["content"].clone(),
            Vendor::Gemini => sent["contents"][1]["parts"].clone(),
            Vendor::Ollama => sent["messages"][2].clone(),
        };
        assert_eq!(given_back, expected, "{vendor:?}");
    }
}
