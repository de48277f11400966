//! What a server's refusal means.
//!
//! Servers agree on status codes in the main and on little else. The body is searched for a message in the usual places; codes and
//! types that name a cause win over the status. What only one vendor says is known to that vendor's [`Judge`], which is asked first.
//! The commonest mistakes of people get a line of their own that says what to do: a wrong key, a wrong model, a base URL that is no
//! model server.

use std::time::Duration;

use serde_json::Value;

use crate::error::{ModelError, ModelErrorClass};

/// A refusal as it came.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    /// HTTP status; none for an error inside a stream.
    pub status: Option<u16>,
    /// The server's words.
    pub message: String,
    /// The server's own codes in lower case, joined by spaces.
    pub codes: String,
    /// The whole body, `null` if it was no JSON.
    pub body: Value,
}

/// What a vendor knows about a refusal. What it leaves open is decided by the rules for all.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// What it means.
    pub class: Option<ModelErrorClass>,
    /// How long the body asks to wait.
    pub retry_after: Option<Duration>,
}

/// A vendor's knowledge of its own refusals.
pub(crate) type Judge = fn(&Refusal) -> Verdict;

/// For servers without any habits of their own.
pub(crate) fn no_verdict(_refusal: &Refusal) -> Verdict {
    Verdict::default()
}

/// Who was asked for what, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The base URL, for people.
    pub server: &'a str,
    /// The model; empty if none was asked for.
    pub model: &'a str,
}

/// The error for an HTTP answer that is no success.
pub(super) fn from_status(
    asked: Asked<'_>,
    status: u16,
    body: &[u8],
    retry_after: Option<Duration>,
    judge: Judge,
) -> ModelError {
    let parsed = serde_json::from_slice::<Value>(body);
    let is_page = body.trim_ascii_start().starts_with(b"<");
    let is_json = parsed.is_ok();
    let mut refusal = parsed
        .map(Refusal::read)
        .unwrap_or_else(|_| Refusal { message: String::from_utf8_lossy(body).into_owned(), ..Refusal::default() });
    refusal.status = Some(status);
    let verdict = judge(&refusal);
    let class = verdict.class.or_else(|| by_words(&refusal)).unwrap_or_else(|| class_by_status(status));
    let class = if words_may_mean(status, class) { class } else { class_by_status(status) };
    let said = if is_page {
        "a web page"
    } else if refusal.message.trim().is_empty() {
        "no explanation"
    } else {
        refusal.message.trim()
    };
    let Asked { server, model } = asked;
    let line = match class {
        ModelErrorClass::Auth => format!("`{server}` does not accept the key ({status}): {said}"),
        ModelErrorClass::Permanent if names_no_model(&refusal) && !model.is_empty() => {
            format!("`{server}` does not offer the model `{model}` ({status}): {said}; check its name")
        }
        ModelErrorClass::Permanent
            if is_page || (matches!(status, 404 | 405) && !is_about_models(&refusal, is_json)) =>
        {
            format!("`{server}` is not a model server, or its path is wrong ({status}): {said}; check the base URL")
        }
        _ => format!("the model server answered {status}: {said}"),
    };
    let wait = verdict.retry_after.or(retry_after);
    // Who reads this has to know how long to be patient; where it is short, nobody reads it.
    let line = match wait.map(|wait| wait.as_secs()) {
        Some(seconds @ 1..) => format!("{line}; it asks to wait {seconds} s"),
        _ => line,
    };
    let error = ModelError::new(class, line).status(status);
    match wait {
        Some(wait) => error.retry_after(wait),
        None => error,
    }
}

/// The error inside a stream that began well. A server that cannot name the cause has usually fallen over.
pub(crate) fn from_stream(error: Value, judge: Judge) -> ModelError {
    let status = stated_status(&error);
    let mut refusal = Refusal::read(error);
    refusal.status = status;
    let verdict = judge(&refusal);
    let class = verdict
        .class
        .or_else(|| by_words(&refusal))
        .or_else(|| status.map(class_by_status))
        .unwrap_or(ModelErrorClass::Transient);
    let class = match status {
        Some(status) if !words_may_mean(status, class) => class_by_status(status),
        _ => class,
    };
    let said = if refusal.message.trim().is_empty() { "no explanation" } else { refusal.message.trim() };
    let line = match class {
        ModelErrorClass::Auth => format!("the model server does not accept the key: {said}"),
        ModelErrorClass::Permanent if names_no_model(&refusal) => {
            format!("the model server does not offer the model: {said}; check its name")
        }
        _ => format!("the model server broke off: {said}"),
    };
    let error = ModelError::new(class, line);
    match verdict.retry_after {
        Some(wait) => error.retry_after(wait),
        None => error,
    }
}

/// The HTTP status that an error inside a stream states, as a number or in digits, beside its words or one level further in.
fn stated_status(error: &Value) -> Option<u16> {
    let places = ["/code", "/status", "/error/code", "/error/status"];
    let number = |value: &Value| match value {
        Value::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok()),
        Value::String(digits) => digits.parse().ok(),
        _ => None,
    };
    places.iter().filter_map(|place| error.pointer(place).and_then(number)).find(|status| (400..600).contains(status))
}

impl Refusal {
    /// Finds the words and codes in a body.
    fn read(body: Value) -> Self {
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(&body);
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
        // A server in between says that another one failed; what that one said is what helps.
        let behind = error.pointer("/metadata/raw").and_then(Value::as_str).filter(|raw| !raw.trim().is_empty());
        let message = behind.map_or(message.clone(), |raw| format!("{message}: {raw}"));
        let codes = ["code", "type", "status"].iter().filter_map(|field| text(error.get(field))).collect::<Vec<_>>();
        let codes = codes.join(" ").to_ascii_lowercase();
        Self { status: None, message, codes, body }
    }
}

/// What the codes and words of most servers mean.
fn by_words(refusal: &Refusal) -> Option<ModelErrorClass> {
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
    // Local servers answer 500 to a tool whose schema they cannot make a grammar of. The same request fails the same way every time.
    if says(&["grammar", "json schema", "json_schema"]) {
        return Some(ModelErrorClass::Permanent);
    }
    if code(&["overloaded", "server_error", "service_unavailable"]) {
        return Some(ModelErrorClass::Transient);
    }
    None
}

/// Whether the words of a body may give a refusal this meaning. Whoever writes the body must not turn a refusal for good into one that is tried
/// again: a key that is not accepted and a request that is wrong stay so.
const fn words_may_mean(status: u16, class: ModelErrorClass) -> bool {
    use ModelErrorClass as Class;
    match status {
        401 => matches!(class, Class::Auth | Class::Permission | Class::Quota),
        400 | 422 => {
            !matches!(class, Class::RateLimit | Class::Transient | Class::Network | Class::Timeout | Class::Malformed)
        }
        _ => true,
    }
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

/// Whether the refusal says that there is no such model. Words about what a model does not support are not meant.
fn names_no_model(refusal: &Refusal) -> bool {
    let message = refusal.message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let plain = says(&["unknown model", "no such model", "model not found", "invalid model", "not a valid model"]);
    let about_models = message.contains("model");
    match refusal.status {
        _ if refusal.codes.contains("model_not_found") => true,
        Some(404) => {
            about_models && (says(&["does not exist", "not found"]) || refusal.codes.contains("not_found") || plain)
        }
        Some(400) => plain || (about_models && says(&["does not exist"])),
        _ => false,
    }
}

/// Whether a 404 comes from something that knows of models at all.
fn is_about_models(refusal: &Refusal, is_json: bool) -> bool {
    is_json && refusal.message.to_ascii_lowercase().contains("model")
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
