//! A model that was asked for by name and that nobody offers.

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError, suggest};
use thiserror::Error;

/// Most names that are given as what may have been meant.
const MOST_NAMED: usize = 3;

/// There is no model of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", self.message())]
pub struct UnknownModel {
    /// What was asked for.
    pub name: String,
    /// The provider whose list does not have it; none if no provider is named like that.
    pub provider: Option<String>,
    /// What may have been meant, the likeliest first, by full names.
    pub nearest: Vec<String>,
}

impl UnknownModel {
    /// The error for a name that a provider's list does not have, with those of the list that are like it, or the first few if none is.
    pub(crate) fn among<'a>(name: &str, provider: Option<&str>, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let mut nearest: Vec<String> = alike(name, &known).into_iter().collect();
        for other in known {
            if nearest.len() < MOST_NAMED && !nearest.iter().any(|one| one == other) {
                nearest.push(other.to_owned());
            }
        }
        Self { name: name.chars().take(80).collect(), provider: provider.map(str::to_owned), nearest }
    }

    /// The error for a name that nobody has, with the one of the known ones that is like it. A name that is not like it is no advice: nobody has
    /// verified that anything answers to it.
    pub(crate) fn like<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        Self::nearest(name, alike(name, &known))
    }

    /// The error for a name that nobody has, with what was meant.
    pub(crate) fn nearest(name: &str, meant: impl IntoIterator<Item = String>) -> Self {
        let mut nearest: Vec<String> = Vec::new();
        for one in meant {
            if nearest.len() < MOST_NAMED && !nearest.contains(&one) {
                nearest.push(one);
            }
        }
        Self { name: name.chars().take(80).collect(), provider: None, nearest }
    }

    fn message(&self) -> String {
        match &self.provider {
            Some(provider) => format!("`{provider}` does not offer the model `{}`", self.name),
            None => format!("there is no model `{}`", self.name),
        }
    }
}

/// The known name that is like this one, in full or without its provider.
fn alike(name: &str, known: &[&str]) -> Option<String> {
    let own = |known: &str| known.split_once('/').map_or(known, |(_, model)| model).to_owned();
    suggest(name, known.iter().copied()).or_else(|| {
        let meant =
            suggest(&own(name), known.iter().map(|known| known.split_once('/').map_or(*known, |(_, model)| model)))?;
        known.iter().find(|known| own(known) == meant).map(|known| (*known).to_owned())
    })
}

impl ToStableError for UnknownModel {
    fn to_stable(&self) -> StableErrorEnvelope {
        let list = match &self.provider {
            Some(provider) => format!("`palyra models list {provider}` shows all"),
            None => "`palyra models list` shows what is configured, `palyra models discover` what could be".to_owned(),
        };
        let hint = match self.nearest.as_slice() {
            [] => list,
            names => {
                format!("use {}; {list}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or "))
            }
        };
        let details = serde_json::json!({ "model": self.name, "provider": self.provider, "nearest": self.nearest });
        StableErrorEnvelope::new("model_not_found", ErrorCategory::NotFound, self.to_string())
            .hint(hint)
            .details(details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_what_was_meant_and_where_to_look() {
        let known = ["home/qwen3", "home/smollm2"];
        let error = UnknownModel::among("qwen4", Some("home"), known).to_stable();
        assert_eq!(error.message, "`home` does not offer the model `qwen4`");
        assert_eq!(
            error.recovery_hint.as_deref(),
            Some("use `home/qwen3` or `home/smollm2`; `palyra models list home` shows all")
        );
        assert_eq!(error.exit_code() as u8, 8);
        // A name that is not like what was asked for is no advice.
        assert!(UnknownModel::like("nosuchmodel", known).nearest.is_empty());
        assert_eq!(UnknownModel::like("qwen4", known).nearest, ["home/qwen3"]);
        let nobody = UnknownModel::like("gpt-5", []).to_stable();
        assert!(nobody.recovery_hint.unwrap().contains("palyra models discover"));
    }
}
