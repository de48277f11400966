//! Embeddings through a router: the first provider of the default route that has them. Vectors of two models cannot be compared, so
//! a call never goes on to another provider after one that has embeddings failed.

use std::time::Duration;

use super::choose::{Naming, Wish, choose};
use super::walk::Ground;
use crate::accounts::{Accounts, ModelName};
use crate::attempt::Answering;
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::ModelError;
use crate::price::AttemptCost;
use crate::request::Purpose;

pub(super) async fn embed(
    ground: &Ground,
    accounts: &Accounts,
    naming: &Naming,
    request: EmbeddingRequest,
) -> Result<Option<Embeddings>, ModelError> {
    for asked in candidates(accounts, naming, &request)? {
        let request = EmbeddingRequest { model: asked.model.clone(), ..request.clone() };
        if let Some(embeddings) = ask(ground, &asked, &request).await? {
            return Ok(Some(Embeddings { asked: Some(asked), ..embeddings }));
        }
    }
    Ok(None)
}

/// Who is asked for these embeddings, in order: the account that a full name says, or those of the default route for a model's own name.
pub(super) fn candidates(
    accounts: &Accounts,
    naming: &Naming,
    request: &EmbeddingRequest,
) -> Result<Vec<Answering>, ModelError> {
    let candidate = |provider: String, model: &str| {
        let keys = accounts.providers.get(&provider).map(|account| account.keys.as_slice()).unwrap_or_default();
        let credential = keys.first().map(|key| key.name.clone());
        Answering { provider, model: model.to_owned(), credential }
    };
    let named = match naming {
        Naming::Full => request.model.parse::<ModelName>().ok(),
        Naming::Bare { .. } => None,
    };
    if let Some(name) = named.filter(|name| accounts.providers.contains_key(&name.provider)) {
        return Ok(vec![candidate(name.provider, &name.model)]);
    }
    let chain = choose(accounts, naming, Wish { purpose: Purpose::Turn, preference: None, agent: None, model: "" })?;
    let mut candidates: Vec<Answering> = Vec::new();
    for target in chain.targets {
        let provider = target.name.provider;
        if candidates.iter().all(|known| known.provider != provider) {
            candidates.push(candidate(provider, &request.model));
        }
    }
    Ok(candidates)
}

/// Asks one provider. Only what certainly cost nothing is tried again, since money was reserved for one call.
async fn ask(ground: &Ground, asked: &Answering, request: &EmbeddingRequest) -> Result<Option<Embeddings>, ModelError> {
    let mut tries = 1;
    loop {
        let error = match ground.pool.get(&asked.provider, asked.credential.as_deref()).await {
            Ok(made) => match made.embed(request.clone()).await {
                Ok(embeddings) => return Ok(embeddings),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let policy = &ground.policy;
        let asked_for = error.retry_after_ms.map(Duration::from_millis);
        let wait = asked_for.unwrap_or_else(|| policy.spread_wait(tries, ground.pace.chance()));
        let may_help =
            error.class.retry() == palyra_common::Retry::MayHelp && AttemptCost::of(&error) == AttemptCost::Nothing;
        if !may_help || tries >= policy.tries_per_target || wait > policy.longest_wait {
            return Err(error);
        }
        ground.pace.sleep(wait).await;
        tries += 1;
    }
}
