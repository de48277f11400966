//! How to reach a provider, for all that are reached over HTTP.

use std::time::Duration;

use palyra_common::SecretString;

/// Window assumed when nobody said: what current models offer at least.
pub(crate) const DEFAULT_CONTEXT_TOKENS: u32 = 128_000;

/// How patient to be in each phase of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Longest wait for a connection.
    pub connect: Duration,
    /// Longest wait for the first byte of the answer, from the beginning of the call.
    pub first_byte: Duration,
    /// Longest silence between two parts of an answer.
    pub between_chunks: Duration,
    /// Longest time for the whole call.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            between_chunks: Duration::from_secs(60),
            total: Duration::from_secs(15 * 60),
        }
    }
}

/// Whether a key may be sent without encryption to a server that is not on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaintextKey {
    /// It may not.
    #[default]
    Refused,
    /// The operator has acknowledged it.
    Allowed,
}

impl PlaintextKey {
    /// Whether nothing is acknowledged.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused)
    }
}

/// How to reach a provider, for all that are reached over HTTP.
#[derive(Debug, Clone)]
pub struct HttpProviderOptions {
    /// The provider's name in the configuration, such as `anthropic`.
    pub name: String,
    /// Base URL; the provider's own if there is none.
    pub base_url: Option<String>,
    /// Key to send, if the server wants one.
    pub api_key: Option<SecretString>,
    /// The key's name, for display and for the journal.
    pub credential: Option<String>,
    /// Model for requests that name none.
    pub model: Option<String>,
    /// How many tokens fit into one call.
    pub context_tokens: u32,
    /// How patient to be.
    pub timeouts: Timeouts,
    /// Whether the key may be sent without encryption.
    pub plaintext_key: PlaintextKey,
}

impl HttpProviderOptions {
    /// Options for a provider of this name, everything else as usual.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_url: None,
            api_key: None,
            credential: None,
            model: None,
            context_tokens: DEFAULT_CONTEXT_TOKENS,
            timeouts: Timeouts::default(),
            plaintext_key: PlaintextKey::Refused,
        }
    }

    /// The key without the line end that files and shells put behind it; none if nothing is left.
    pub(crate) fn trimmed_key(&self) -> Option<SecretString> {
        let key = self.api_key.as_ref()?.expose().trim();
        (!key.is_empty()).then(|| SecretString::from(key.to_owned()))
    }

    /// The model for requests that name none; none if it is blank.
    pub(crate) fn present_model(&self) -> Option<String> {
        self.model.as_ref().map(|model| model.trim().to_owned()).filter(|model| !model.is_empty())
    }
}
