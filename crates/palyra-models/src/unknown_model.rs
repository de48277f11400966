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
    /// The error for a name, with those of the known ones that are like it, or the first few if none is.
    pub(crate) fn among<'a>(name: &str, provider: Option<&str>, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let own = |known: &str| known.split_once('/').map_or(known, |(_, model)| model).to_owned();
        let alike = suggest(name, known.iter().copied()).or_else(|| {
            let meant = suggest(
                &own(name),
                known.iter().map(|known| known.split_once('/').map_or(*known, |(_, model)| model)),
            )?;
            known.iter().find(|known| own(known) == meant).map(|known| (*known).to_owned())
        });
        let mut nearest: Vec<String> = alike.into_iter().collect();
        for other in known {
            if nearest.len() < MOST_NAMED && !nearest.iter().any(|one| one == other) {
                nearest.push(other.to_owned());
            }
        }
        Self { name: name.chars().take(80).collect(), provider: provider.map(str::to_owned), nearest }
    }

    fn message(&self) -> String {
        match &self.provider {
            Some(provider) => format!("`{provider}` does not offer the model `{}`", self.name),
            None => format!("there is no model `{}`", self.name),
        }
    }
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
        let nobody = UnknownModel::among("gpt-5", None, []).to_stable();
        assert!(nobody.recovery_hint.unwrap().contains("palyra models discover"));
    }
}
