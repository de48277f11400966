//! `palyra models list [PROVIDER]`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;
use palyra_client::api::{
    ModelTroubleView, ModelsStatusResponse, OfferedModelView, OfferedModelsParams, OfferedModelsResponse, ProviderView,
};
use palyra_client::command::{Command, NoParams};
use palyra_common::ExitCode;
use palyra_models::{Accounts, Listed, ModelName, Target, listed, select, window};
use serde_json::json;

use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;
use crate::launcher;
use crate::render::table;
use crate::render::text::instant;

/// How long a model server on this machine is waited for.
const SERVER_PATIENCE: Duration = Duration::from_secs(3);

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
        return routed(status.as_ref(), context).await;
    };
    offered(provider, context).await
}

/// What the routes name.
async fn routed(status: Option<&ModelsStatusResponse>, context: &Context) -> Result<ExitCode, CliError> {
    let console = &context.console;
    for problem in status.iter().flat_map(|status| status.problem.iter().chain(&status.prices_problem)) {
        console.remark(&format!("note: the daemon still uses the previous version of the file: {}", problem.message));
    }
    if let Some(difference) = status.and_then(|status| super::environment_difference(context, status)) {
        console.remark(&difference);
    }
    let files = super::Files::read(context)?;
    let mut models = listed(&files.accounts);
    let told = if status.is_some() { Told::by_servers(&models, context).await? } else { Told::default() };
    for Target { name, context_tokens, .. } in models.iter_mut().map(|one| &mut one.target) {
        if let Some(account) = files.accounts.providers.get(&name.provider) {
            *context_tokens = window(account, &name.model, told.window(name));
        }
    }
    if !console.is_text() {
        let documents: Vec<_> =
            models.iter().map(|one| json!({ "model": one, "state": state(&one.target, status) })).collect();
        console.list(&documents, &documents)?;
        return Ok(ExitCode::Ok);
    }
    if models.is_empty() || !files.routes_count() {
        // What answers now, whatever that is. Nothing is sent by asking.
        let in_use = match status {
            Some(status) => Ok(status.provider.clone()),
            None => select(&files.options(context)).map(|selection| {
                let info = selection.provider.describe();
                ProviderView { name: info.name, model: info.model, reason: selection.reason }
            }),
        };
        match in_use {
            Ok(ProviderView { name, model, reason }) => {
                let name = if model.is_empty() { name } else { model };
                console.line(&format!("in use: {name}: {reason}"))?;
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
                if told.is_silent_about(&one.target, &files.accounts) {
                    "unknown".to_owned()
                } else {
                    one.target.context_tokens.to_string()
                },
                can.join(" "),
                one_line(&one.target.destination),
                one_line(&state(&one.target, status)),
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

/// What model servers on this machine say of their windows: what a run would find.
#[derive(Default)]
struct Told {
    windows: BTreeMap<ModelName, u32>,
    asked: BTreeSet<String>,
}

impl Told {
    async fn by_servers(models: &[Listed], context: &Context) -> Result<Self, CliError> {
        let mut told = Self::default();
        for target in models.iter().map(|one| &one.target).filter(|target| target.is_own_server()) {
            let provider = &target.name.provider;
            if !told.asked.insert(provider.clone()) {
                continue;
            }
            let asking = Command::ModelsOffered(OfferedModelsParams { provider: provider.clone() });
            let asked = tokio::time::timeout(SERVER_PATIENCE, super::of_daemon(context, &asking)).await;
            // What a server that is away would say is not known; the column says so.
            let Ok(Ok(Some(OfferedModelsResponse { models }))) = asked else { continue };
            let said =
                models.into_iter().filter_map(|one| Some((ModelName::new(provider, &one.id), one.context_tokens?)));
            told.windows.extend(said);
        }
        Ok(told)
    }

    fn window(&self, name: &ModelName) -> Option<u32> {
        self.windows.get(name).copied()
    }

    /// Whether nobody has said how large the window of a model is, although its server would know.
    fn is_silent_about(&self, target: &Target, accounts: &Accounts) -> bool {
        let account = accounts.providers.get(&target.name.provider);
        let configured = account.is_some_and(|account| account.configured_window(&target.name.model).is_some());
        self.asked.contains(&target.name.provider) && !configured && self.window(&target.name).is_none()
    }
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

/// What a provider says it has, as the daemon finds it with its own keys.
async fn offered(name: &str, context: &Context) -> Result<ExitCode, CliError> {
    let console = &context.console;
    let client = launcher::connect(context).await?;
    console.progress(&format!("asking {name}…"));
    let params = OfferedModelsParams { provider: name.to_owned() };
    let asked: Result<OfferedModelsResponse, _> = client.execute(&Command::ModelsOffered(params)).await;
    console.wipe_progress();
    super::remark_environment(context).await?;
    let OfferedModelsResponse { models } = asked?;
    if !console.is_text() {
        console.list(&models, &models)?;
        return Ok(ExitCode::Ok);
    }
    if models.is_empty() {
        console.line(&format!("{name} lists no models"))?;
        return Ok(ExitCode::Ok);
    }
    table_of(name, &models).iter().try_for_each(|line| console.line(line))?;
    Ok(ExitCode::Ok)
}

/// The models with what the provider says about them; a column that it says nothing about is left out.
fn table_of(provider: &str, models: &[OfferedModelView]) -> Vec<String> {
    let name = |model: &OfferedModelView| one_line(&format!("{provider}/{}", model.id));
    let window = |model: &OfferedModelView| model.context_tokens.map(|tokens| tokens.to_string()).unwrap_or_default();
    let can = |model: &OfferedModelView| one_line(&model.capabilities.as_deref().unwrap_or_default().join(" "));
    let has_window = models.iter().any(|model| model.context_tokens.is_some());
    let has_can = models.iter().any(|model| !can(model).is_empty());
    match (has_window, has_can) {
        (true, true) => {
            let rows: Vec<[String; 3]> = models.iter().map(|one| [name(one), window(one), can(one)]).collect();
            table::lines(["MODEL", "WINDOW", "CAN"], &rows)
        }
        (true, false) => {
            let rows: Vec<[String; 2]> = models.iter().map(|one| [name(one), window(one)]).collect();
            table::lines(["MODEL", "WINDOW"], &rows)
        }
        (false, true) => {
            let rows: Vec<[String; 2]> = models.iter().map(|one| [name(one), can(one)]).collect();
            table::lines(["MODEL", "CAN"], &rows)
        }
        (false, false) => {
            let rows: Vec<[String; 1]> = models.iter().map(|one| [name(one)]).collect();
            table::lines(["MODEL"], &rows)
        }
    }
}
