//! Whether a provider offers a model, asked before somebody comes to rely on it.

use std::time::Duration;

use super::catalogue::offers;
use super::router::{Router, RouterOptions};
use crate::accounts::{Account, ModelName};
use crate::error::{ModelError, ModelErrorClass};
use crate::provider::ModelProvider as _;
use crate::unknown_model::UnknownModel;

/// Longest wait for a list; a person waits for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a provider says about a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// It offers the model.
    Listed,
    /// It has no list, so nothing is known.
    NoList,
    /// It could not be asked.
    NotAsked(ModelError),
}

/// Asks a provider whether it offers a model. A list that does not have it is an error, with the names that are like it.
pub async fn check_listed(
    account: &Account,
    name: &ModelName,
    options: RouterOptions,
) -> Result<Listing, UnknownModel> {
    let kind = account.kind;
    let router = Router::single(&name.provider, account.clone(), None, None, options);
    let asked = tokio::time::timeout(PATIENCE, router.models()).await.unwrap_or_else(|_| {
        let message = format!("no list of models within {} s", PATIENCE.as_secs());
        Err(ModelError::new(ModelErrorClass::Timeout, message))
    });
    let entries = match asked {
        Ok(entries) if entries.is_empty() => return Ok(Listing::NoList),
        Ok(entries) => entries,
        Err(error) if error.status == Some(404) => return Ok(Listing::NoList),
        Err(error) => return Ok(Listing::NotAsked(error)),
    };
    if offers(&entries, kind, &name.model) {
        return Ok(Listing::Listed);
    }
    let known: Vec<String> =
        entries.iter().map(|entry| ModelName::new(&name.provider, &entry.id).to_string()).collect();
    Err(UnknownModel::among(&name.model, Some(&name.provider), known.iter().map(String::as_str)))
}
