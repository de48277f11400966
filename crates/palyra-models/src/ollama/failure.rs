//! What Ollama's refusals mean.
//!
//! The server says everything in words. Those that matter are few and have been the same for years.

use crate::error::ModelErrorClass as Class;
use crate::wire::{Refusal, Verdict};

/// What a refusal means.
pub(super) fn judge(refusal: &Refusal) -> Verdict {
    let words = refusal.message.to_ascii_lowercase();
    let says = |texts: &[&str]| texts.iter().any(|text| words.contains(text));
    let class = if says(&["exceeds the context", "input length exceeds", "exceed_context_size", "context length"]) {
        Some(Class::ContextTooLong)
    } else if says(&["usage limit", "subscription"]) {
        Some(Class::Quota)
    // Waiting does not make a machine larger, a model able or a file whole.
    } else if says(&[
        "system memory",
        "does not support",
        "not found",
        "invalid model",
        "unable to load model",
        "out of memory",
    ]) {
        Some(Class::Permanent)
    } else if says(&["server busy", "maximum pending requests", "runner process", "unexpected eof"]) {
        Some(Class::Transient)
    } else {
        None
    };
    Verdict { class, retry_after: None }
}
