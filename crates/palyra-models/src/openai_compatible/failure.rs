//! What a server's refusal means.
//!
//! Servers agree on status codes in the main and on little else. The body is searched for a message in the usual places;
//! codes and types that name a cause win over the status.

use std::time::Duration;

use palyra_common::SecretString;
use serde_json::Value;

use crate::error::{ModelError, ModelErrorClass};

/// A refusal: status, text for people and the server's own codes.
#[derive(Debug, Default)]
struct Refusal {
    message: String,
    codes: String,
}

/// The error for an HTTP answer that is no success.
pub(super) fn from_status(status: u16, body: &[u8], retry_after: Option<&str>) -> ModelError {
    let refusal = serde_json::from_slice::<Value>(body)
        .map(|value| read(&value))
        .unwrap_or_else(|_| Refusal { message: String::from_utf8_lossy(body).into_owned(), codes: String::new() });
    let class = class_by_codes(&refusal).unwrap_or_else(|| class_by_status(status));
    let said = if refusal.message.trim().is_empty() { "no explanation" } else { refusal.message.trim() };
    let error = ModelError::new(class, format!("the model server answered {status}: {said}")).status(status);
    match retry_after.and_then(parse_retry_after) {
        Some(wait) => error.retry_after(wait),
        None => error,
    }
}

/// The error inside a stream that began well. A server that cannot name the cause has usually fallen over.
pub(super) fn from_stream(error: &Value) -> ModelError {
    let refusal = read(error);
    let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let class = class_by_codes(&refusal).or_else(|| status.map(class_by_status)).unwrap_or(ModelErrorClass::Transient);
    ModelError::new(class, format!("the model server broke off: {}", refusal.message))
}

/// Removes the key from a text, should a server have repeated it.
pub(super) fn without_key(mut error: ModelError, key: Option<&SecretString>) -> ModelError {
    if let Some(key) = key.map(|key| key.expose()).filter(|key| key.len() >= 4) {
        error.message = error.message.replace(key.as_str(), "[redacted]");
    }
    error
}

fn read(value: &Value) -> Refusal {
    let error = value.get("error").unwrap_or(value);
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Null) | None => None,
        Some(other) => Some(other.to_string()),
    };
    let message = ["message", "detail", "error", "msg"]
        .iter()
        .find_map(|field| text(error.get(field)))
        .or_else(|| error.as_str().map(str::to_owned))
        .unwrap_or_else(|| error.to_string());
    let codes = ["code", "type", "status"].iter().filter_map(|field| text(error.get(field))).collect::<Vec<_>>();
    Refusal { message, codes: codes.join(" ").to_ascii_lowercase() }
}

fn class_by_codes(refusal: &Refusal) -> Option<ModelErrorClass> {
    let codes = refusal.codes.as_str();
    let message = refusal.message.to_ascii_lowercase();
    let code = |words: &[&str]| words.iter().any(|word| codes.contains(word));
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if code(&["context_length_exceeded", "exceed_context_size", "string_above_max_length"])
        || says(&["context length", "context window", "context size", "maximum context", "prompt is too long"])
    {
        return Some(ModelErrorClass::ContextTooLong);
    }
    if code(&["content_filter", "content_policy", "moderation"]) {
        return Some(ModelErrorClass::ContentPolicy);
    }
    if code(&["insufficient_quota", "billing"]) {
        return Some(ModelErrorClass::Quota);
    }
    if code(&["invalid_api_key", "authentication_error", "unauthenticated"]) {
        return Some(ModelErrorClass::Auth);
    }
    if code(&["permission_denied", "permission_error"]) {
        return Some(ModelErrorClass::Permission);
    }
    if code(&["rate_limit"]) {
        return Some(ModelErrorClass::RateLimit);
    }
    if code(&["overloaded", "server_error", "service_unavailable"]) {
        return Some(ModelErrorClass::Transient);
    }
    None
}

fn class_by_status(status: u16) -> ModelErrorClass {
    match status {
        401 => ModelErrorClass::Auth,
        402 => ModelErrorClass::Quota,
        403 => ModelErrorClass::Permission,
        413 => ModelErrorClass::ContextTooLong,
        429 => ModelErrorClass::RateLimit,
        501 | 505 => ModelErrorClass::Permanent,
        408 | 409 | 425 | 500..=599 => ModelErrorClass::Transient,
        _ => ModelErrorClass::Permanent,
    }
}

/// Seconds, whole or with a fraction. The date form is not used by model servers and is left alone.
fn parse_retry_after(text: &str) -> Option<Duration> {
    let seconds: f64 = text.trim().trim_end_matches('s').parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use ModelErrorClass as Class;

    #[test]
    fn refusals_are_understood() {
        let table = [
            (401, json!({"error": {"message": "bad key", "code": "invalid_api_key"}}), Class::Auth),
            (400, json!({"error": {"message": "bad key", "code": "invalid_api_key"}}), Class::Auth),
            (403, json!({"error": {"message": "not yours"}}), Class::Permission),
            (402, json!({"error": "pay"}), Class::Quota),
            (
                429,
                json!({"error": {"message": "slow", "type": "requests", "code": "rate_limit_exceeded"}}),
                Class::RateLimit,
            ),
            (429, json!({"error": {"message": "x", "type": "insufficient_quota"}}), Class::Quota),
            (400, json!({"error": {"message": "x", "code": "context_length_exceeded"}}), Class::ContextTooLong),
            (
                400,
                json!({"error": {"message": "exceeds the available context size", "type": "exceed_context_size_error"}}),
                Class::ContextTooLong,
            ),
            (413, json!({}), Class::ContextTooLong),
            (400, json!({"error": {"message": "x", "code": "content_filter"}}), Class::ContentPolicy),
            (404, json!({"error": {"message": "no such model"}}), Class::Permanent),
            (400, json!({"detail": "what"}), Class::Permanent),
            (307, json!({}), Class::Permanent),
            (500, json!({"error": {"message": "oops", "type": "server_error"}}), Class::Transient),
            (503, json!("down"), Class::Transient),
            (529, json!({"error": {"type": "overloaded_error"}}), Class::Transient),
            (408, json!({}), Class::Transient),
        ];
        for (status, body, class) in table {
            let error = from_status(status, body.to_string().as_bytes(), None);
            assert_eq!((error.class, error.status), (class, Some(status)), "{status} {body}");
        }
    }

    #[test]
    fn messages_come_from_wherever_the_server_put_them() {
        for body in [
            r#"{"error":{"message":"why"}}"#,
            r#"{"error":"why"}"#,
            r#"{"detail":"why"}"#,
            "why",
            "\"why\"",
            "{\"message\":\"why\"}",
        ] {
            assert_eq!(from_status(400, body.as_bytes(), None).message, "the model server answered 400: why", "{body}");
        }
        assert_eq!(from_status(500, b"", None).message, "the model server answered 500: no explanation");
        let html = from_status(502, b"<html>\xff\n<body>", None);
        assert_eq!(html.class, Class::Transient);
    }

    #[test]
    fn retry_after_is_read_and_nonsense_is_ignored() {
        let wait = |text| from_status(429, b"{}", Some(text)).retry_after_ms;
        assert_eq!(wait("2"), Some(2000));
        assert_eq!(wait(" 0.5 "), Some(500));
        for nonsense in ["", "soon", "-1", "NaN", "inf", "1e300"] {
            assert_eq!(wait(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn errors_inside_a_stream_are_transient_unless_they_say_more() {
        assert_eq!(from_stream(&json!({"message": "x"})).class, Class::Transient);
        assert_eq!(from_stream(&json!({"message": "x", "code": 429})).class, Class::RateLimit);
        assert_eq!(
            from_stream(&json!({"message": "x", "code": "context_length_exceeded"})).class,
            Class::ContextTooLong
        );
    }

    #[test]
    fn a_repeated_key_is_masked() {
        let key = SecretString::from("sk-hunter2".to_owned());
        let error = ModelError::new(Class::Auth, "incorrect key sk-hunter2 given");
        assert_eq!(without_key(error, Some(&key)).message, "incorrect key [redacted] given");
    }
}
