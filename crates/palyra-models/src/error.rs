//! What can go wrong with a model call, by what it means for the caller.
//!
//! A [`ModelError`] is plain data without a source error: it is journalled with the run and must read the same in replay.
//! Whatever a lower layer said is in the message, on one line. Messages never hold keys: providers build them from status,
//! host and the server's own error text, which they pass through [`ModelError::new`]'s clean-up and length limit.

use std::time::Duration;

use palyra_common::{ErrorCategory, Retry, StableErrorEnvelope, ToStableError, model_advice, runtime_contract_enum};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longest message kept. A server may answer with a page of HTML; nobody reads more than this.
const MAX_MESSAGE_CHARS: usize = 400;
/// What a message ends with that was cut off.
pub(crate) const TRUNCATED: char = '…';

runtime_contract_enum! {
    /// What a failed model call means.
    pub enum ModelErrorClass("model_error_class") {
        /// The key is missing or not accepted.
        Auth = "auth",
        /// The key is good but may not do this.
        Permission = "permission",
        /// Too many calls just now.
        RateLimit = "rate_limit",
        /// The account has nothing left to spend.
        Quota = "quota",
        /// The server failed for now.
        Transient = "transient",
        /// The server refuses this request for good.
        Permanent = "permanent",
        /// The request does not fit into the model's window.
        ContextTooLong = "context_too_long",
        /// The provider's content rules refuse.
        ContentPolicy = "content_policy",
        /// The answer cannot be understood.
        Malformed = "malformed",
        /// The server cannot be reached, or the connection broke.
        Network = "network",
        /// The server took too long.
        Timeout = "timeout",
    }
}

impl ModelErrorClass {
    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub const fn retry(self) -> Retry {
        match self {
            Self::RateLimit | Self::Transient | Self::Network | Self::Timeout => Retry::MayHelp,
            Self::Auth
            | Self::Permission
            | Self::Quota
            | Self::Permanent
            | Self::ContextTooLong
            | Self::ContentPolicy
            | Self::Malformed => Retry::Pointless,
        }
    }
}

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct ModelError {
    /// What it means.
    pub class: ModelErrorClass,
    /// What happened, for a person, in one line.
    pub message: String,
    /// HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the server asks to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The tools whose input schemas the server refused, where it says so; more than one if its words fit several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Whether the request can have reached a server.
    #[serde(default, skip_serializing_if = "Delivery::may_have_arrived")]
    pub delivery: Delivery,
}

/// Whether a request can have reached a server: one that did may be charged for, whatever became of its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It may have.
    #[default]
    Possible,
    /// It was certainly never sent.
    NotSent,
}

impl Delivery {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
    const fn may_have_arrived(&self) -> bool {
        matches!(self, Self::Possible)
    }
}

impl ModelError {
    /// An error of this class. The message is brought to one line of bounded length.
    #[must_use]
    pub fn new(class: ModelErrorClass, message: impl AsRef<str>) -> Self {
        Self {
            class,
            message: one_line(message.as_ref()),
            status: None,
            retry_after_ms: None,
            tools: Vec::new(),
            delivery: Delivery::Possible,
        }
    }

    /// Says that the request was certainly never sent, so nothing can be charged for it.
    #[must_use]
    pub const fn not_sent(mut self) -> Self {
        self.delivery = Delivery::NotSent;
        self
    }

    /// Adds the HTTP status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds how long the server asks to wait.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after_ms = Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Says whose input schemas the server refused.
    #[must_use]
    pub(crate) fn about_tools(mut self, tools: Vec<String>) -> Self {
        if !tools.is_empty() {
            self.message = format!("the server refused the input schema of {}: {}", named(&tools), self.message);
            self.tools = tools;
        }
        self
    }

    /// An answer that cannot be understood.
    pub(crate) fn malformed(message: impl AsRef<str>) -> Self {
        Self::new(ModelErrorClass::Malformed, message)
    }
}

/// The tools for people.
fn named(tools: &[String]) -> String {
    match tools {
        [only] => format!("the tool `{only}`"),
        several => format!(
            "one of the tools {}",
            several.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Joins lines, drops control characters, shortens.
fn one_line(text: &str) -> String {
    let joined = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = String::new();
    for word in joined {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if line.chars().count() > MAX_MESSAGE_CHARS {
        line = line.chars().take(MAX_MESSAGE_CHARS).collect();
        line.push(TRUNCATED);
    }
    line
}

impl ToStableError for ModelError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let (code, category) = match self.class {
            ModelErrorClass::Auth => ("model_auth_failed", ErrorCategory::Auth),
            ModelErrorClass::Permission => ("model_permission_denied", ErrorCategory::Auth),
            ModelErrorClass::RateLimit => ("model_rate_limited", ErrorCategory::Availability),
            ModelErrorClass::Quota => ("model_quota_exhausted", ErrorCategory::Dependency),
            ModelErrorClass::Transient => ("model_unavailable", ErrorCategory::Availability),
            ModelErrorClass::Permanent => ("model_request_rejected", ErrorCategory::Dependency),
            ModelErrorClass::ContextTooLong => ("model_context_too_long", ErrorCategory::Validation),
            ModelErrorClass::ContentPolicy => ("model_content_refused", ErrorCategory::Policy),
            ModelErrorClass::Malformed => ("model_answer_malformed", ErrorCategory::Dependency),
            ModelErrorClass::Network => ("model_unreachable", ErrorCategory::Availability),
            ModelErrorClass::Timeout => ("model_timeout", ErrorCategory::Availability),
        };
        let mut envelope = StableErrorEnvelope::new(code, category, self.message.clone());
        if !self.tools.is_empty() {
            envelope = envelope.hint(
                "if the tool comes from an MCP server or a skill, take it out with `palyra mcp remove` or `palyra skills disable`; \
                 `palyra models test --all-tools` checks every tool",
            );
        } else if let Some(advice) = model_advice(code) {
            envelope = envelope.hint(advice);
        }
        let mut details = serde_json::Map::new();
        details.insert("class".to_owned(), self.class.as_str().into());
        if let Some(status) = self.status {
            details.insert("status".to_owned(), status.into());
        }
        if let Some(wait) = self.retry_after_ms {
            details.insert("retry_after_ms".to_owned(), wait.into());
        }
        if !self.tools.is_empty() {
            details.insert("tools".to_owned(), serde_json::json!(self.tools));
        }
        envelope.retryable(self.class.retry()).details(serde_json::Value::Object(details))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_own_code_and_a_hint() {
        let mut codes = std::collections::BTreeSet::new();
        for class in ModelErrorClass::ALL {
            let envelope = ModelError::new(*class, "x").to_stable();
            assert!(envelope.code.starts_with("model_"), "{}", envelope.code);
            assert!(envelope.recovery_hint.is_some(), "{}", envelope.code);
            assert_eq!(envelope.retryable, class.retry() == Retry::MayHelp);
            codes.insert(envelope.code);
        }
        assert_eq!(codes.len(), ModelErrorClass::ALL.len());
    }

    #[test]
    fn messages_are_one_bounded_line() {
        let error = ModelError::new(ModelErrorClass::Transient, "<html>\r\n  <p>bad\u{7} gateway</p>");
        assert_eq!(error.message, "<html> <p>bad gateway</p>");
        let long = ModelError::new(ModelErrorClass::Transient, "ä".repeat(10_000));
        assert_eq!(long.message.chars().count(), MAX_MESSAGE_CHARS + 1);
    }

    #[test]
    fn details_carry_status_and_wait() {
        let error = ModelError::new(ModelErrorClass::RateLimit, "slow down")
            .status(429)
            .retry_after(Duration::from_millis(1500));
        let details = error.to_stable().details.unwrap();
        assert_eq!(*details, serde_json::json!({"class": "rate_limit", "status": 429, "retry_after_ms": 1500}));
    }
}
