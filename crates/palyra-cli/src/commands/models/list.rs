//! `palyra models list [PROVIDER]`.

use std::sync::Arc;

use clap::Args;
use palyra_client::api::{ModelTroubleView, ModelsStatusResponse};
use palyra_client::command::{Command, NoParams};
use palyra_common::ExitCode;
use palyra_models::{
    Account, HttpProviders, ModelEntry, ModelProvider as _, Router, RouterOptions, Target, listed, select,
};
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::{instant, shortened};

/// Whose models.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Ask this provider which models it offers, instead of listing those of the routes
    #[arg(value_name = "PROVIDER")]
    provider: Option<String>,
}

pub(super) async fn execute(arguments: &ListArguments, context: &Context) -> Result<ExitCode, CliError> {
    let Some(provider) = &arguments.provider else {
        let status = super::of_daemon(context, &Command::ModelsStatus(NoParams {})).await?;
        return routed(status.as_ref(), context);
    };
    offered(provider, &super::Files::read(context)?, context).await
}

/// What the routes name.
fn routed(status: Option<&ModelsStatusResponse>, context: &Context) -> Result<ExitCode, CliError> {
    let console = &context.console;
    for problem in status.iter().flat_map(|status| status.problem.iter().chain(&status.prices_problem)) {
        console.remark(&format!("note: the daemon still uses the previous version of the file: {}", problem.message));
    }
    let files = super::Files::read(context)?;
    let models = listed(&files.accounts);
    if !console.is_text() {
        let documents: Vec<_> =
            models.iter().map(|one| json!({ "model": one, "state": state(&one.target, status) })).collect();
        console.list(&documents, &documents)?;
        return Ok(ExitCode::Ok);
    }
    if models.is_empty() || !files.routes_count() {
        // What answers now, whatever that is. Nothing is sent by asking.
        match select(&files.options(context)) {
            Ok(selection) => {
                let info = selection.provider.describe();
                let name = if info.model.is_empty() { info.name } else { info.model };
                console.line(&format!("in use: {name}: {}", selection.reason))?;
            }
            Err(error) => console.remark(&format!("note: the configured provider cannot be used: {error}")),
        }
    }
    if models.is_empty() {
        let why = if files.path.exists() {
            format!("`{}` has no routes", files.path.display())
        } else {
            "there is no models.toml yet".to_owned()
        };
        console.remark(&format!("{why}; `palyra models discover` shows what you could use"));
        return Ok(ExitCode::Ok);
    }
    let rows: Vec<[String; 6]> = models
        .iter()
        .map(|one| {
            let can: Vec<&str> = one.target.capabilities.iter().map(|capability| capability.as_str()).collect();
            [
                one.target.name.to_string(),
                one.routes.join(", "),
                one.target.context_tokens.to_string(),
                can.join(" "),
                shortened(&one.target.destination, 60),
                shortened(&state(&one.target, status), 120),
            ]
        })
        .collect();
    let lines = table::lines(["MODEL", "ASKED", "WINDOW", "CAN", "WHERE", "STATE"], &rows);
    lines.iter().try_for_each(|line| console.line(line))?;
    if status.is_none() {
        console.remark(super::NO_DAEMON);
    }
    Ok(ExitCode::Ok)
}

/// How it is with a model, as the daemon has found lately: what keeps it from being asked, or `ready`.
fn state(target: &Target, status: Option<&ModelsStatusResponse>) -> String {
    let Some(status) = status else { return "unknown".to_owned() };
    let concerns = |trouble: &&ModelTroubleView| {
        trouble.provider == target.name.provider
            && trouble.model.as_ref().is_none_or(|model| *model == target.name.model)
    };
    let told = |trouble: &ModelTroubleView| {
        let key = trouble.credential.as_ref().map(|key| format!("key {key} ")).unwrap_or_default();
        let state = match trouble.state.as_str() {
            "open" => "cooling down".to_owned(),
            "half_open" => "tried again by the next call".to_owned(),
            "probing" => "being tried again".to_owned(),
            _ => "failed recently".to_owned(),
        };
        let until =
            trouble.until.filter(|_| trouble.state == "open").map(|until| format!(" until {} UTC", instant(until)));
        let last = trouble.last.as_ref().map(|last| format!(": {last}")).unwrap_or_default();
        format!("{key}{state}{}{last}", until.unwrap_or_default())
    };
    let troubles: Vec<String> = status.troubles.iter().filter(concerns).map(told).collect();
    if troubles.is_empty() { "ready".to_owned() } else { troubles.join("; ") }
}

/// What a provider says it has.
async fn offered(name: &str, files: &super::Files, context: &Context) -> Result<ExitCode, CliError> {
    let account = match files.accounts.providers.get(name) {
        Some(account) => account.clone(),
        None => offer(name, context).await?,
    };
    let options = RouterOptions::new(Arc::new(HttpProviders), Arc::new(context.environment.clone()));
    context.console.progress(&format!("asking {name}…"));
    let models = Router::single(name, account, None, None, options).models().await;
    context.console.wipe_progress();
    let models = models?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&models, &models)?;
        return Ok(ExitCode::Ok);
    }
    if models.is_empty() {
        console.line(&format!("{name} lists no models"))?;
        return Ok(ExitCode::Ok);
    }
    let rows: Vec<[String; 3]> = models.iter().map(|entry| row(name, entry)).collect();
    let lines = table::lines(["MODEL", "WINDOW", "CAN"], &rows);
    lines.iter().try_for_each(|line| console.line(line))?;
    Ok(ExitCode::Ok)
}

fn row(name: &str, entry: &ModelEntry) -> [String; 3] {
    let can = entry.capabilities.iter().flatten().map(|capability| capability.as_str()).collect::<Vec<_>>().join(" ");
    let window = entry.context_tokens.map(|tokens| tokens.to_string()).unwrap_or_default();
    [shortened(&format!("{name}/{}", entry.id), 100), window, can]
}

/// The account that an offer would make. To ask for its list is to send it its own key and nothing else, and it was named just now.
async fn offer(name: &str, context: &Context) -> Result<Account, CliError> {
    let offers = super::offers(context).await;
    let found = offers.into_iter().find(|offer| offer.name == name);
    found
        .map(|offer| offer.account)
        .ok_or_else(|| palyra_models::AccountsError::UnknownProvider { name: name.to_owned(), suggestion: None }.into())
}
