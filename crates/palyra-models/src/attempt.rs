//! Who was asked, and what came of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::event::Usage;

/// Who answers a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answering {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's name as the provider knows it.
    pub model: String,
    /// The name of the credential; never the credential itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// `provider/model`, or the provider alone where it chooses the model itself.
impl fmt::Display for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, model, .. } = self;
        if model.is_empty() { f.write_str(provider) } else { write!(f, "{provider}/{model}") }
    }
}

/// A try at a call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Who was asked.
    pub asked: Answering,
    /// What came of it.
    pub error: ModelError,
    /// How long is waited before the next try, in milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
    /// Tokens it used before it failed, where the provider had said so: they are paid for all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether the answer had come to its end, so that the usage is the last word.
    #[serde(default, skip_serializing_if = "AnswerEnd::is_missing")]
    pub end: AnswerEnd,
}

/// Whether an answer came to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEnd {
    /// It broke off, or never began.
    #[default]
    Missing,
    /// The model had stopped by itself.
    Arrived,
}

impl AnswerEnd {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
    const fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}
