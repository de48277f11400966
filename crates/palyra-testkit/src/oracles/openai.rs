//! Bodies of the OpenAI-compatible interface.

use palyra_common::StableErrorEnvelope;
use palyra_daemon::fuzzing::{chat_body, embeddings_body, responses_body};
use serde_json::Value;

use super::refused;

const CODES: [&str; 3] = ["body_malformed", "request_invalid", "unsupported_parameter"];

/// A body of `/v1/chat/completions`.
pub fn openai_chat(bytes: &[u8]) {
    body(bytes, chat_body);
}

/// A body of `/v1/responses`.
pub fn openai_responses(bytes: &[u8]) {
    body(bytes, responses_body);
}

/// A body of `/v1/embeddings`.
pub fn openai_embeddings(bytes: &[u8]) {
    body(bytes, embeddings_body);
}

/// The verdict depends on what is said and not on how it is written; and whatever is not known is refused rather than left out.
fn body(bytes: &[u8], read: fn(&[u8]) -> Result<(), StableErrorEnvelope>) {
    let verdict = read(bytes);
    if let Err(error) = &verdict {
        refused(error, &CODES, bytes.len());
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_slice::<Value>(bytes) else {
        assert!(verdict.is_err(), "what is no record was taken");
        return;
    };
    let codes =
        |verdict: &Result<(), StableErrorEnvelope>| verdict.as_ref().map_err(|error| error.code.clone()).copied();
    let again = read(Value::Object(fields.clone()).to_string().as_bytes());
    assert_eq!(codes(&again), codes(&verdict), "written anew it is judged otherwise");
    if verdict.is_ok() {
        fields.insert("a_field_that_nobody_has".to_owned(), Value::Null);
        assert_eq!(read(Value::Object(fields.clone()).to_string().as_bytes()), Ok(()), "null is nothing");
        fields.insert("a_field_that_nobody_has".to_owned(), Value::Bool(true));
        let refusal = read(Value::Object(fields).to_string().as_bytes()).unwrap_err();
        assert_eq!(refusal.code, "unsupported_parameter");
    }
}
