//! A model by its full name: `provider/model`, where the provider is the operator's own name for an account.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest name of an account or of a key.
const NAME_LIMIT: usize = 32;
/// Longest name of a model.
const MODEL_LIMIT: usize = 200;

/// A model of an account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelName {
    /// The account's name in `models.toml`.
    pub provider: String,
    /// The model's name as the provider knows it; it may hold further slashes.
    pub model: String,
}

impl ModelName {
    /// A model of an account.
    #[must_use]
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.model.is_empty() { f.pad(&self.provider) } else { f.pad(&format!("{}/{}", self.provider, self.model)) }
    }
}

impl FromStr for ModelName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write PROVIDER/MODEL, such as `anthropic/claude-sonnet-4-5`";
        let (provider, model) = text.split_once('/').ok_or_else(|| format!("it names no provider; {form}"))?;
        check_name(provider).map_err(|reason| format!("the provider's name {reason}"))?;
        if model.is_empty() || model.len() > MODEL_LIMIT || model.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(format!("it names no model; {form}"));
        }
        Ok(Self::new(provider, model))
    }
}

impl Serialize for ModelName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ModelName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Whether a name can stand in a route, in a message and in a record without quotes.
pub(super) fn check_name(name: &str) -> Result<(), &'static str> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > NAME_LIMIT || !name.bytes().all(fits) {
        return Err("must be 1 to 32 of the characters a-z, 0-9, `_` and `-`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names_are_cut_at_the_first_slash() {
        let name: ModelName = "openrouter/meta/llama-4:free".parse().unwrap();
        assert_eq!((name.provider.as_str(), name.model.as_str()), ("openrouter", "meta/llama-4:free"));
        assert_eq!(name.to_string(), "openrouter/meta/llama-4:free");
        assert_eq!(ModelName::new("local", "").to_string(), "local");
        for wrong in ["", "gpt-5", "/m", "a/", "A b/m", "a/m n", &format!("a/{}", "m".repeat(201))] {
            assert!(wrong.parse::<ModelName>().is_err(), "{wrong}");
        }
    }
}
