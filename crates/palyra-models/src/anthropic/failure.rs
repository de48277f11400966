//! What the Messages API's refusals mean.
//!
//! A refusal names its type, and the types are few. Two causes hide behind the type for bad requests: an account without
//! credit, and a prompt that is too long.

use crate::error::ModelErrorClass as Class;
use crate::wire::{Refusal, Verdict};

/// What a refusal means.
pub(super) fn judge(refusal: &Refusal) -> Verdict {
    let words = refusal.message.to_ascii_lowercase();
    let says = |texts: &[&str]| texts.iter().any(|text| words.contains(text));
    let kind = refusal.codes.as_str();
    let class = if says(&["credit balance", "usage limits", "spend limit"]) {
        Some(Class::Quota)
    } else if says(&["prompt is too long", "exceed context limit", "context window", "input length and `max_tokens`"]) {
        Some(Class::ContextTooLong)
    } else if says(&["content filtering policy", "usage policy"]) {
        Some(Class::ContentPolicy)
    } else if kind.contains("authentication_error") {
        Some(Class::Auth)
    } else if kind.contains("billing_error") {
        Some(Class::Quota)
    } else if kind.contains("permission_error") {
        Some(Class::Permission)
    } else if kind.contains("rate_limit_error") {
        Some(Class::RateLimit)
    } else if kind.contains("request_too_large") {
        Some(Class::ContextTooLong)
    } else if kind.contains("timeout_error") {
        Some(Class::Timeout)
    } else if kind.contains("overloaded_error") || kind.contains("api_error") {
        Some(Class::Transient)
    } else if kind.contains("not_found_error") || kind.contains("invalid_request_error") {
        Some(Class::Permanent)
    } else {
        None
    };
    Verdict { class, retry_after: None }
}
