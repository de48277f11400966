//! Every documented reason for which a model stops, with and without words before it.
//!
//! `stop_reasons.json` of each vendor holds a row per reason: what comes of it when something was said, and when nothing was.

use palyra_models::testing::Reply;
use palyra_models::{ModelEvent, StopReason};
use serde_json::{Value, json};

use super::{Vendor, ask, fixtures, read_json, request};

fn stream(vendor: Vendor, reason: &str, words: &str) -> Vec<u8> {
    let event = |value: Value| format!("data: {value}\n\n");
    match vendor {
        Vendor::Anthropic => {
            let mut events = vec![json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}})];
            if !words.is_empty() {
                events.push(
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                );
                let delta = json!({"type": "text_delta", "text": words});
                events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
                events.push(json!({"type": "content_block_stop", "index": 0}));
            }
            events.push(
                json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}),
            );
            events.push(json!({"type": "message_stop"}));
            events.into_iter().map(event).collect::<String>().into_bytes()
        }
        Vendor::Gemini => {
            let parts = if words.is_empty() { json!([]) } else { json!([{"text": words}]) };
            let candidate = json!({"content": {"parts": parts, "role": "model"}, "finishReason": reason});
            event(json!({"candidates": [candidate]})).into_bytes()
        }
        Vendor::Ollama => {
            let message = json!({"role": "assistant", "content": words});
            format!("{}\n", json!({"message": message, "done": true, "done_reason": reason})).into_bytes()
        }
    }
}

#[tokio::test]
async fn every_reason_to_stop_is_known() {
    for vendor in Vendor::ALL {
        let table = read_json(&fixtures(vendor, "stop_reasons.json"));
        for (reason, outcomes) in table.as_object().unwrap() {
            for (words, outcome) in [("some words", &outcomes[0]), ("", &outcomes[1])] {
                let (_server, provider) = vendor.pair(vec![Reply::raw(stream(vendor, reason, words))]);
                let (events, error) = ask(provider.as_ref(), request(None)).await;
                let found = match (&error, events.last()) {
                    (Some(error), _) => format!("error {}", error.class),
                    (None, Some(ModelEvent::Finished(stop))) => stop.to_string(),
                    (None, last) => panic!("{vendor:?} {reason}: {last:?}"),
                };
                assert_eq!(json!(found), *outcome, "{vendor:?} {reason} after `{words}`: {error:?}");
            }
        }
    }
    assert_eq!(StopReason::ContentFilter.to_string(), "content_filter");
}

#[tokio::test]
async fn a_prompt_that_is_refused_is_told_as_such() {
    for reason in ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK"] {
        let chunk =
            json!({"promptFeedback": {"blockReason": reason, "blockReasonMessage": "because"}, "usageMetadata": {}});
        let (_server, provider) = Vendor::Gemini.pair(vec![Reply::raw(format!("data: {chunk}\n\n"))]);
        let (events, error) = ask(provider.as_ref(), request(None)).await;
        let error = error.unwrap();
        assert!(events.is_empty());
        assert_eq!(error.class, palyra_models::ModelErrorClass::ContentPolicy);
        assert!(error.message.contains(reason) && error.message.ends_with(": because"), "{error}");
    }
}
