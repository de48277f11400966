//! Commands that ask a provider something: which models it offers, and whether one works as runs use it.

use std::sync::Arc;
use std::time::Duration;

use palyra_agent::ToolSelection;
use palyra_client::api::{
    ModelTestView, OfferedModelView, OfferedModelsParams, OfferedModelsResponse, TestModelsParams, TestModelsResponse,
};
use palyra_models::{
    Account, AccountsError, ModelEntry, ModelName, ModelProvider as _, ProbePrompt, ProviderInfo, Router, TryOut,
    try_account, try_out,
};

use super::Caller;
use super::refusal::{Refusal, Result};
use crate::app::App;
use crate::models::Probing;

/// A model on this machine may be loaded first, and reads the tool list word by word.
const LIMIT: Duration = Duration::from_secs(300);

/// What a provider says it has. One that was found and is named here may be asked before it is used.
pub(super) async fn offered(app: &App, params: &OfferedModelsParams) -> Result<OfferedModelsResponse> {
    let name = params.provider.as_str();
    let Probing { mut accounts, options, .. } = app.models.probing().await?;
    if !accounts.providers.contains_key(name) {
        accounts.providers.extend(app.models.found(name).await);
    }
    let account: Account = accounts.providers.remove(name).ok_or_else(|| AccountsError::unknown(name, &accounts))?;
    let models = Router::single(name, account, None, None, options).models().await?;
    app.models.note_reached(name);
    Ok(OfferedModelsResponse { models: models.into_iter().map(entry).collect() })
}

/// Has a model call a tool and answer, with what a run sends first.
pub(super) async fn test(app: &App, caller: &Caller, params: TestModelsParams) -> Result<TestModelsResponse> {
    let tests = app.engine.model_tests(caller.id());
    let metered = |provider| tests.provider(provider);
    let tools = if params.all_tools { ToolSelection::All } else { ToolSelection::Needed };
    let prompt = |info: &ProviderInfo| -> ProbePrompt { app.engine.probe_prompt(info, tools) };
    let Probing { mut accounts, options, single } = app.models.probing().await?;
    let name = params.model.as_deref().map(str::parse::<ModelName>).transpose();
    let name = name.map_err(|error| Refusal::field("model", error.to_string()))?;
    let mut results = Vec::new();
    match (name, single) {
        (None, Some(provider)) => {
            if provider.describe().is_language_model {
                let result = try_out(&*metered(Arc::clone(&provider)), "", &prompt, LIMIT).await;
                results.push(view(&provider.describe().model, result));
            }
        }
        (name, _) => {
            let names = name.map_or_else(|| accounts.routes.default.clone(), |name| vec![name]);
            for name in &names {
                if !accounts.providers.contains_key(&name.provider) {
                    accounts.providers.extend(app.models.found(&name.provider).await);
                }
                let tried = try_account(&accounts, name, &options, &prompt, &metered, LIMIT).await?;
                results.extend(tried.into_iter().map(|result| view(&name.to_string(), result)));
            }
        }
    }
    if let Some(refusal) = tests.take_refusal() {
        return Err(Refusal::from(refusal));
    }
    Ok(TestModelsResponse { provider: app.models.view(), results })
}

fn view(asked: &str, result: TryOut) -> ModelTestView {
    let TryOut { answering, text, usage, duration_ms, tools, context_tokens, called, error, .. } = result;
    // The server may have chosen the model itself.
    let known = answering.as_ref().filter(|who| !who.model.is_empty());
    let model = known.map(|who| ModelName::new(&who.provider, &who.model).to_string());
    ModelTestView {
        model: model.unwrap_or_else(|| asked.to_owned()),
        credential: answering.and_then(|who| who.credential),
        context_tokens,
        tools: u32::try_from(tools).unwrap_or(u32::MAX),
        called,
        text,
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        duration_ms,
        error,
    }
}

fn entry(entry: ModelEntry) -> OfferedModelView {
    let ModelEntry { id, name, context_tokens, max_output_tokens, capabilities, input_price, output_price } = entry;
    let names = |list: Vec<palyra_models::Capability>| list.iter().map(|one| one.as_str().to_owned()).collect();
    OfferedModelView {
        id,
        name,
        context_tokens,
        max_output_tokens,
        capabilities: capabilities.map(names),
        input_price,
        output_price,
    }
}
