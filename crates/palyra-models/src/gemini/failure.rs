//! What Gemini's refusals mean.
//!
//! A refusal is a `google.rpc.Status`: a code word, a message, and details that say more, such as which key was wrong, which
//! quota is used up, and how long to wait.

use std::time::Duration;

use serde_json::Value;

use crate::error::ModelErrorClass as Class;
use crate::wire::{Refusal, Verdict};

/// What a refusal means.
pub(super) fn judge(refusal: &Refusal) -> Verdict {
    // Without `alt=sse` even a refusal comes inside a list.
    let body = refusal.body.as_array().and_then(|list| list.first()).unwrap_or(&refusal.body);
    let error = body.get("error").unwrap_or(body);
    let details = error.get("details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let status = error.get("status").and_then(Value::as_str).unwrap_or_default();
    let words = refusal.message.to_ascii_lowercase();
    let says = |texts: &[&str]| texts.iter().any(|text| words.contains(text));
    let key_is_wrong = details.iter().any(|detail| {
        let reason = detail.get("reason").and_then(Value::as_str).unwrap_or_default();
        reason.starts_with("API_KEY_") && reason != "API_KEY_SERVICE_BLOCKED"
    });
    let class = if key_is_wrong || says(&["api key not valid", "api key expired", "reported as leaked"]) {
        Some(Class::Auth)
    } else {
        match status {
            "INVALID_ARGUMENT" | "OUT_OF_RANGE" if says(&["maximum number of tokens", "token count", "too long"]) => {
                Some(Class::ContextTooLong)
            }
            "FAILED_PRECONDITION" if says(&["billing"]) => Some(Class::Quota),
            "FAILED_PRECONDITION" if says(&["location"]) => Some(Class::Permission),
            "INVALID_ARGUMENT"
            | "FAILED_PRECONDITION"
            | "OUT_OF_RANGE"
            | "NOT_FOUND"
            | "UNIMPLEMENTED"
            | "ALREADY_EXISTS" => Some(Class::Permanent),
            "UNAUTHENTICATED" => Some(Class::Auth),
            "PERMISSION_DENIED" => Some(Class::Permission),
            "RESOURCE_EXHAUSTED" if used_up_for_the_day(details) || says(&["billing", "prepayment", "spend"]) => {
                Some(Class::Quota)
            }
            "RESOURCE_EXHAUSTED" => Some(Class::RateLimit),
            "DEADLINE_EXCEEDED" => Some(Class::Timeout),
            "INTERNAL" | "UNAVAILABLE" | "ABORTED" | "UNKNOWN" | "CANCELLED" | "DATA_LOSS" => Some(Class::Transient),
            _ => None,
        }
    };
    Verdict { class, retry_after: details.iter().find_map(wait) }
}

/// Whether a quota that lasts a day is used up. Those of a minute come back while one waits.
fn used_up_for_the_day(details: &[Value]) -> bool {
    let violations = details.iter().filter_map(|detail| detail.get("violations")?.as_array()).flatten();
    violations.filter_map(|one| one.get("quotaId")?.as_str()).any(|id| id.contains("PerDay"))
}

/// How long a `google.rpc.RetryInfo` asks to wait.
fn wait(detail: &Value) -> Option<Duration> {
    let kind = detail.get("@type")?.as_str()?;
    let seconds = detail.get("retryDelay")?.as_str()?.strip_suffix('s')?.parse::<f64>().ok()?;
    // A day's quota names the rest of the day; more than a week is nonsense.
    kind.ends_with("google.rpc.RetryInfo")
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
        .filter(|wait| *wait <= Duration::from_secs(7 * 24 * 60 * 60))
}
