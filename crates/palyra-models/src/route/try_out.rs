//! One tiny call, to see whether a model answers.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use palyra_common::{RunId, StableErrorEnvelope, ToStableError as _};
use serde::Serialize;

use super::policy::RoutePolicy;
use super::router::{Router, RouterOptions};
use crate::accounts::{Account, AccountKey, Accounts, AccountsError, ModelName, suggest};
use crate::assembler::TurnAssembler;
use crate::attempt::{Answering, Attempt};
use crate::error::ModelError;
use crate::event::Usage;
use crate::message::Message;
use crate::provider::ModelProvider;
use crate::request::{ModelRequest, Purpose};

/// What is asked. It says nothing about anybody.
const QUESTION: &str = "Reply with the single word: ready";
/// Room for a word, and for models that think before it.
const ROOM: u32 = 256;

/// What came of a tiny call.
#[derive(Debug, Clone, Serialize)]
pub struct TryOut {
    /// Who answered or was asked last.
    pub answering: Option<Answering>,
    /// What it said, shortened.
    pub text: String,
    /// Tokens used.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
    /// Tries that failed before.
    pub attempts: Vec<Attempt>,
    /// Why it failed and what to do, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<StableErrorEnvelope>,
}

/// Asks a model for one word. A failure is part of the result.
pub async fn try_out(provider: &dyn ModelProvider, model: &str, limit: Duration) -> TryOut {
    let began = Instant::now();
    let mut heard = TurnAssembler::new();
    let mut answering = None;
    let asked = ask(provider, model, &mut heard, &mut answering);
    let outcome = tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| {
        let message = format!("no answer within {} s", limit.as_secs());
        Err(ModelError::new(crate::error::ModelErrorClass::Timeout, message))
    });
    let turn = heard.finish();
    let mut error = outcome.err();
    if error.is_none() && turn.text.trim().is_empty() && turn.reasoning.is_empty() {
        error = Some(ModelError::malformed("the model answered with nothing"));
    }
    TryOut {
        answering: turn.answering.or(answering),
        text: turn.text.trim().chars().take(80).collect(),
        usage: turn.usage,
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        attempts: turn.attempts,
        error: error.map(|error| error.to_stable()),
    }
}

/// Asks a model for one word with each key of its account, one after the other: a key that fails is not hidden by one that works. One
/// try each.
pub async fn try_account(
    accounts: &Accounts,
    name: &ModelName,
    options: &RouterOptions,
    limit: Duration,
) -> Result<Vec<TryOut>, AccountsError> {
    let account = accounts.providers.get(&name.provider).ok_or_else(|| AccountsError::UnknownProvider {
        name: name.provider.clone(),
        suggestion: suggest(&name.provider, accounts.providers.keys().map(String::as_str)),
    })?;
    let keys: Vec<Vec<AccountKey>> = match account.keys.as_slice() {
        [] => vec![Vec::new()],
        keys => keys.iter().map(|key| vec![key.clone()]).collect(),
    };
    let mut results = Vec::new();
    for keys in keys {
        let account = Account { keys, ..account.clone() };
        let policy = RoutePolicy { most_tries: 1, ..RoutePolicy::default() };
        let options = RouterOptions { policy, ..options.clone() };
        let model = Some(name.model.clone());
        let router = Router::single(&name.provider, account, model, None, options);
        results.push(try_out(&router, "", limit).await);
    }
    Ok(results)
}

async fn ask(
    provider: &dyn ModelProvider,
    model: &str,
    heard: &mut TurnAssembler,
    answering: &mut Option<Answering>,
) -> Result<(), ModelError> {
    let request = ModelRequest {
        model: model.to_owned(),
        max_output_tokens: Some(ROOM),
        ..ModelRequest::new(RunId::generate(), 1, Purpose::Turn, vec![Message::user(QUESTION)])
    };
    let mut stream = provider.stream(request).await?;
    while let Some(event) = stream.next().await {
        let event = event?;
        if let crate::event::ModelEvent::Answering(who) = &event {
            *answering = Some(who.clone());
        }
        heard.push(&event)?;
    }
    Ok(())
}
