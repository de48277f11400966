//! Accepting an offer: the one step from "found" to "used".

use std::path::Path;

use palyra_common::suggest;

use super::offer::Offer;
use crate::accounts::{self, Accounts, AccountsError, ModelName};

/// Makes a model the first of the default route. An account that `models.toml` does not have is taken from the offers.
pub fn adopt(
    path: &Path,
    offers: &[Offer],
    model: &ModelName,
    fallbacks: &[ModelName],
) -> Result<Accounts, AccountsError> {
    let present = Accounts::load(path)?;
    if present.providers.contains_key(&model.provider) {
        return accounts::set_default(path, model, fallbacks);
    }
    match offers.iter().find(|offer| offer.name == model.provider) {
        Some(offer) => accounts::accept(path, &offer.account, model, fallbacks),
        None => {
            let offered = offers.iter().map(|offer| offer.name.as_str());
            let suggestion = suggest(&model.provider, present.providers.keys().map(String::as_str).chain(offered));
            Err(AccountsError::UnknownProvider { name: model.provider.clone(), suggestion })
        }
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::Environment;

    use super::*;
    use crate::detect::offers_of_environment;

    #[test]
    fn an_offer_becomes_the_default_with_one_step_and_what_was_there_is_no_silent_fallback() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("models.toml");
        let environment = Environment::from_pairs([("ANTHROPIC_API_KEY", "hunter2"), ("OPENAI_API_KEY", "hunter2")]);
        let offers = offers_of_environment(&environment);
        let anthropic = ModelName::new("anthropic", "claude-sonnet-4-5");
        adopt(&path, &offers, &anthropic, &[]).unwrap();
        let accounts = adopt(&path, &offers, &ModelName::new("openai", "gpt-5"), &[]).unwrap();
        assert_eq!(accounts.routes.default, [ModelName::new("openai", "gpt-5")]);
        let accounts = adopt(&path, &offers, &ModelName::new("openai", "gpt-5"), &[anthropic]).unwrap();
        let route: Vec<String> = accounts.routes.default.iter().map(ToString::to_string).collect();
        assert_eq!(route, ["openai/gpt-5", "anthropic/claude-sonnet-4-5"]);
        assert!(!std::fs::read_to_string(&path).unwrap().contains("hunter2"));
        let error = adopt(&path, &offers, &ModelName::new("antropic", "x"), &[]).unwrap_err();
        assert!(error.to_string().ends_with("did you mean `anthropic`?"), "{error}");
    }
}
