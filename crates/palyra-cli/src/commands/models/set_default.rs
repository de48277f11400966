//! `palyra models set-default PROVIDER/MODEL`.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use palyra_client::api::{ExplainModelsParams, ExplainModelsResponse, ModelsStatusResponse};
use palyra_client::command::{Command, NoParams};
use palyra_common::config::ModelProviderChoice;
use palyra_common::{ErrorCategory, ExitCode, StableErrorEnvelope, ToStableError as _};
use palyra_models::{
    Account, HttpProviders, Listing, ModelName, OFFLINE, OfflineProvider, ProviderKind, RouterOptions, adopt,
    check_listed,
};
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

/// How often a running daemon is asked; it looks at the file once a second.
const LOOKS: u32 = 100;
const ENOUGH_LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Which model.
#[derive(Debug, Args)]
pub(crate) struct SetDefaultArguments {
    /// The model, such as anthropic/claude-sonnet-4-5
    #[arg(value_name = "PROVIDER/MODEL")]
    model: ModelName,
    /// Ask this model when the default fails (repeatable); without it, configured fallbacks stay as they are
    #[arg(long = "fallback", value_name = "PROVIDER/MODEL")]
    fallbacks: Vec<ModelName>,
}

pub(super) async fn execute(arguments: &SetDefaultArguments, context: &Context) -> Result<ExitCode, CliError> {
    let files = super::Files::read(context)?;
    let model = &arguments.model;
    let is_known = files.accounts.providers.contains_key(&model.provider);
    if !is_known && model.provider == OFFLINE {
        return Err(offline_planner());
    }
    // Only one that the file does not have is looked for.
    let offers = if is_known { Vec::new() } else { super::offers(context).await };
    if !is_known && !offers.iter().any(|offer| offer.name == model.provider) {
        key_missing(model)?;
    }
    for model in std::iter::once(model).chain(&arguments.fallbacks) {
        let account = files.accounts.providers.get(&model.provider);
        let account =
            account.or_else(|| offers.iter().find(|offer| offer.name == model.provider).map(|offer| &offer.account));
        if let Some(account) = account {
            offered(account, model, context).await?;
        }
    }
    let replaced = files.accounts.routes.default.first().filter(|before| *before != model).cloned();
    let accounts = adopt(&files.path, &offers, model, &arguments.fallbacks)?;
    let destination = accounts.providers.get(&model.provider).map(|account| account.destination()).unwrap_or_default();
    let console = &context.console;
    let overridden = (files.model.provider != ModelProviderChoice::Auto).then_some(files.model.provider);
    let running = match overridden {
        None => running(model, context).await?,
        Some(_) => Running::Nobody,
    };
    if !console.is_text() {
        console.document(&json!({
            "path": files.path, "default": accounts.routes.default, "sent_to": destination,
            "overridden_by": overridden.map(|provider| format!("model.provider = {provider}")),
            "used_by_daemon": running == Running::Uses,
        }))?;
        return Ok(ExitCode::Ok);
    }
    console.line(&format!("default model: {model}, written to `{}`", files.path.display()))?;
    console.line(&format!("conversations are sent to {destination}"))?;
    let rest: Vec<String> = accounts.routes.default.iter().skip(1).map(ToString::to_string).collect();
    if !rest.is_empty() {
        console.line(&format!("if it fails: {}", rest.join(", then ")))?;
    }
    if let Some(before) = replaced.filter(|before| !accounts.routes.default.contains(before)) {
        console.remark(&format!(
            "note: {before} is not asked any more; to keep it as a fallback: palyra models set-default {model} --fallback {before}"
        ));
    }
    if let Some(provider) = overridden {
        console.remark(&format!(
            "note: `model.provider` is `{provider}`, which goes before models.toml; to let it go: palyra config unset model.provider"
        ));
    }
    console.remark(match running {
        Running::Nobody => "note: to try it: palyra models test",
        Running::Uses => {
            "note: the running daemon uses it from now on, without a restart; to try it: palyra models test"
        }
        Running::DoesNot => "note: the running daemon does not use it yet; `palyra daemon status` says why",
    });
    if running != Running::Nobody {
        super::remark_environment(context).await?;
    }
    Ok(ExitCode::Ok)
}

/// Refuses a model that its provider does not list, with the names that are like it. A provider that cannot be asked is believed.
async fn offered(account: &Account, model: &ModelName, context: &Context) -> Result<(), CliError> {
    let options = RouterOptions::new(Arc::new(HttpProviders), Arc::new(context.environment.clone()));
    context.console.progress(&format!("asking {} for its models…", model.provider));
    let listing = check_listed(account, model, options).await;
    context.console.wipe_progress();
    match listing.map_err(|unknown| CliError::Model(Box::new(unknown.to_stable())))? {
        Listing::Listed => {}
        Listing::NoList => context.console.remark(&format!(
            "warning: `{}` lists no models, so the name `{}` was not checked",
            model.provider, model.model
        )),
        Listing::NotAsked(error) => context.console.remark(&format!(
            "warning: whether `{}` offers the model `{}` could not be checked: {}",
            model.provider, model.model, error.message
        )),
    }
    Ok(())
}

/// The offline planner needs no provider, so `models.toml` cannot name it.
fn offline_planner() -> CliError {
    let message = "the offline planner is not a model of models.toml".to_owned();
    let name = OfflineProvider::full_name();
    let hint = format!(
        "`palyra config set model.provider offline` has it answer every run; `palyra run --model {name}` has it answer one"
    );
    CliError::Model(Box::new(
        StableErrorEnvelope::new("model_name_invalid", ErrorCategory::Validation, message).hint(hint),
    ))
}

/// Refuses a vendor whose key is not there, by the name of the variable that would hold it.
fn key_missing(model: &ModelName) -> Result<(), CliError> {
    let Ok(kind) = model.provider.parse::<ProviderKind>() else { return Ok(()) };
    let [variable, others @ ..] = kind.key_variables() else { return Ok(()) };
    let also = others.iter().map(|other| format!(" or {other}")).collect::<String>();
    let message = format!("`{}` needs a key and {variable}{also} is not set", model.provider);
    let hint = format!("export {variable}=…, then run this again");
    let envelope = StableErrorEnvelope::new("model_auth_failed", ErrorCategory::Auth, message).hint(hint);
    Err(CliError::Model(Box::new(envelope)))
}

/// What a daemon makes of the new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Running {
    /// None runs.
    Nobody,
    /// It asks the model first.
    Uses,
    /// It still asks another one.
    DoesNot,
}

/// Waits until a daemon that runs asks the model first, so that the very next command finds it so.
async fn running(model: &ModelName, context: &Context) -> Result<Running, CliError> {
    let wanted = model.to_string();
    for look in 0..LOOKS {
        let asking = Command::ModelsExplain(ExplainModelsParams::default());
        let explained: Option<ExplainModelsResponse> = super::of_daemon(context, &asking).await?;
        let Some(explained) = explained else { return Ok(Running::Nobody) };
        if explained.choice.is_some_and(|choice| choice.steps.first().is_some_and(|step| step.target.name == wanted)) {
            return Ok(Running::Uses);
        }
        // It has looked by now, and says itself that it cannot use the file.
        if look > ENOUGH_LOOKS {
            let asking = Command::ModelsStatus(NoParams {});
            let status: Option<ModelsStatusResponse> = super::of_daemon(context, &asking).await?;
            if status.is_some_and(|status| status.problem.is_some()) {
                break;
            }
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Ok(Running::DoesNot)
}
