//! Every documented refusal means what it says.
//!
//! `NAME.json` holds status, headers and body of the refusal, and the class, the wait and a word of the line that comes of it.

use palyra_common::ToStableError as _;
use palyra_models::testing::Reply;
use serde_json::{Value, json};

use super::{Vendor, ask, files, fixtures, read_json, request};

async fn check(vendor: Vendor) {
    let folder = fixtures(vendor, "refusals");
    let recorded = files(&folder, ".json");
    assert!(recorded.len() > 5, "{}", folder.display());
    for path in recorded {
        let name = path.display();
        let refusal = read_json(&path);
        let mut reply = match &refusal["body"] {
            Value::String(text) => Reply::raw(text.clone()).with_status(status(&refusal)).content_type("text/html"),
            body => Reply::status(status(&refusal), body),
        };
        for (header, value) in refusal["headers"].as_object().into_iter().flatten() {
            reply = reply.header(header, value.as_str().unwrap());
        }
        let (server, provider) = vendor.pair(vec![reply]);
        let (_, error) = ask(provider.as_ref(), request(None)).await;
        let error = error.unwrap_or_else(|| panic!("{name}: no error"));
        assert_eq!(json!(error.class), refusal["class"], "{name}: {error}");
        assert_eq!(error.status, Some(status(&refusal)), "{name}: {error}");
        assert_eq!(error.retry_after_ms, refusal["retry_after_ms"].as_u64(), "{name}: {error}");
        let says = refusal["says"].as_str().unwrap();
        assert!(error.message.contains(says), "{name}: {error}");
        assert!(!error.to_stable().to_string().contains("hunter2"), "{name}: {error}");
        assert_eq!(server.requests().len(), 1, "{name}: one call is one request");
    }
}

fn status(refusal: &Value) -> u16 {
    u16::try_from(refusal["status"].as_u64().unwrap()).unwrap()
}

#[tokio::test]
async fn anthropic_refusals_are_understood() {
    check(Vendor::Anthropic).await;
}

#[tokio::test]
async fn gemini_refusals_are_understood() {
    check(Vendor::Gemini).await;
}

#[tokio::test]
async fn ollama_refusals_are_understood() {
    check(Vendor::Ollama).await;
}
