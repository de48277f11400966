//! Embeddings through a router: the first provider of the default route that has them. Vectors of two models cannot be compared, so
//! a call never goes on to another provider after one that has embeddings failed.

use std::time::Duration;

use super::choose::{Naming, Wish, choose};
use super::walk::Ground;
use crate::accounts::{Accounts, ModelName};
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::ModelError;
use crate::request::Purpose;

pub(super) async fn embed(
    ground: &Ground,
    accounts: &Accounts,
    naming: &Naming,
    request: EmbeddingRequest,
) -> Result<Option<Embeddings>, ModelError> {
    // A full name says which account; anything else is a model's own name.
    let named = match naming {
        Naming::Full => request.model.parse::<ModelName>().ok(),
        Naming::Bare { .. } => None,
    };
    if let Some(name) = named.filter(|name| accounts.providers.contains_key(&name.provider)) {
        let request = EmbeddingRequest { model: name.model, ..request };
        return ask(ground, accounts, &name.provider, &request).await;
    }
    let chain = choose(accounts, naming, Wish { purpose: Purpose::Turn, preference: None, agent: None, model: "" })?;
    let mut asked: Vec<String> = Vec::new();
    for target in chain.targets {
        let provider = target.name.provider;
        if asked.contains(&provider) {
            continue;
        }
        if let Some(embeddings) = ask(ground, accounts, &provider, &request).await? {
            return Ok(Some(embeddings));
        }
        asked.push(provider);
    }
    Ok(None)
}

async fn ask(
    ground: &Ground,
    accounts: &Accounts,
    provider: &str,
    request: &EmbeddingRequest,
) -> Result<Option<Embeddings>, ModelError> {
    let keys = accounts.providers.get(provider).map(|account| account.keys.as_slice()).unwrap_or_default();
    let key = keys.first().map(|key| key.name.as_str());
    let mut tries = 1;
    loop {
        let error = match ground.pool.get(provider, key).await {
            Ok(made) => match made.embed(request.clone()).await {
                Ok(embeddings) => return Ok(embeddings),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let policy = &ground.policy;
        let asked_for = error.retry_after_ms.map(Duration::from_millis);
        let wait = asked_for.unwrap_or_else(|| policy.spread_wait(tries, ground.pace.chance()));
        let may_help = error.class.retry() == palyra_common::Retry::MayHelp;
        if !may_help || tries >= policy.tries_per_target || wait > policy.longest_wait {
            return Err(error);
        }
        ground.pace.sleep(wait).await;
        tries += 1;
    }
}
