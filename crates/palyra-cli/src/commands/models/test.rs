//! `palyra models test [PROVIDER/MODEL]`: a short conversation with the whole tool list and one tool call, and what came of it in one line.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use palyra_common::{ExitCode, ToStableError as _};
use palyra_models::{
    HttpProviders, ModelName, RouterOptions, SchemaDialect, TryOut, default_tools, schema_losses, select, try_account,
    try_out,
};
use serde_json::json;

use crate::console::{Style, one_line};
use crate::context::Context;
use crate::error::CliError;
use crate::render::text::{millis, quoted};

/// A model on this machine may be loaded first, and reads the tool list word by word.
const LIMIT: Duration = Duration::from_secs(300);

/// The agent of runs that name no other.
const MAIN_AGENT: &str = "main";

/// Which model.
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// The model; all of the default route if none is named
    #[arg(value_name = "PROVIDER/MODEL")]
    model: Option<ModelName>,
    /// Also list the parts of tool schemas that are not sent because servers do not accept them
    #[arg(long, short)]
    verbose: bool,
}

pub(super) async fn execute(arguments: &TestArguments, context: &Context) -> Result<ExitCode, CliError> {
    if arguments.verbose {
        losses(context)?;
    }
    let files = super::Files::read(context)?;
    let names: Vec<ModelName> = match &arguments.model {
        Some(name) => vec![name.clone()],
        None if files.routes_count() => files.accounts.routes.default.clone(),
        None => return simple(&files, context).await,
    };
    let mut accounts = files.accounts.clone();
    if let [name] = names.as_slice()
        && !accounts.providers.contains_key(&name.provider)
    {
        // One that was found and is named here may be tried before it is used.
        let offers = super::offers(context).await;
        if let Some(offer) = offers.into_iter().find(|offer| offer.name == name.provider) {
            accounts.providers.insert(offer.name, offer.account);
        }
    }
    let options = RouterOptions::new(Arc::new(HttpProviders), Arc::new(context.environment.clone()));
    let mut results = Vec::new();
    for name in &names {
        context.console.progress(&format!("asking {name}…"));
        let tried = try_account(&accounts, name, &options, LIMIT).await;
        context.console.wipe_progress();
        results.extend(tried?.into_iter().map(|result| (name.to_string(), result)));
    }
    report(&results, context)
}

/// The one provider of the `[model]` section.
async fn simple(files: &super::Files, context: &Context) -> Result<ExitCode, CliError> {
    let selection = select(&files.options(context)).map_err(|error| CliError::Model(Box::new(error.to_stable())))?;
    let info = selection.provider.describe();
    if !info.is_language_model {
        context.console.line(&selection.reason)?;
        context.console.remark("no model is configured; `palyra models discover` shows what you could use");
        return Ok(ExitCode::Ok);
    }
    // The server may have to say itself which model it has.
    let info = selection.provider.resolve(MAIN_AGENT, None).await.unwrap_or(info);
    let name = if info.model.is_empty() { info.name } else { info.model };
    context.console.progress(&format!("asking {name}…"));
    let result = try_out(&*selection.provider, "", LIMIT).await;
    context.console.wipe_progress();
    report(&[(name, result)], context)
}

fn report(results: &[(String, TryOut)], context: &Context) -> Result<ExitCode, CliError> {
    let console = &context.console;
    if !console.is_text() {
        let documents: Vec<_> =
            results.iter().map(|(name, result)| json!({ "model": name, "result": result })).collect();
        console.list(&documents, &documents)?;
    } else {
        results.iter().try_for_each(|(name, result)| console.line(&line(name, result, context)))?;
    }
    let failed = results.iter().find_map(|(_, result)| result.error.as_ref());
    Ok(failed.map_or(ExitCode::Ok, |error| error.exit_code()))
}

fn line(name: &str, result: &TryOut, context: &Context) -> String {
    let answering = result.answering.as_ref();
    let key =
        answering.and_then(|who| who.credential.as_ref()).map(|key| format!(" with key {key}")).unwrap_or_default();
    // The server may have chosen the model itself.
    let known = answering.map(|who| ModelName::new(&who.provider, &who.model).to_string());
    let name = one_line(&known.filter(|known| known.contains('/')).unwrap_or_else(|| name.to_owned()));
    match &result.error {
        None => {
            let good = context.console.styled(Style::Good, "works");
            let used = format!("{} + {} tokens", result.usage.input_tokens, result.usage.output_tokens);
            let called = match &result.called {
                Some(tool) => format!("called {tool}"),
                None => "called no tool".to_owned(),
            };
            let said =
                if result.text.is_empty() { String::new() } else { format!(" and answered {}", quoted(&result.text)) };
            let told = format!("{} tools offered", result.tools);
            format!("{name}{key}: {good}: {called}{said} in {}, {used}, {told}", millis(result.duration_ms))
        }
        Some(error) => {
            let bad = context.console.styled(Style::Bad, "fails");
            let hint = error.recovery_hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
            format!("{name}{key}: {bad}: {} [{}]{hint}", error.message, error.code)
        }
    }
}

/// What the tools lose on the way to servers that turn schemas into grammars. Calls are checked against the whole schemas all the same.
fn losses(context: &Context) -> Result<(), CliError> {
    let losses = schema_losses(&default_tools(), SchemaDialect::Portable);
    let console = &context.console;
    if !console.is_text() || losses.is_empty() {
        return Ok(());
    }
    console.line("not sent to OpenAI-compatible servers and Ollama, and checked here when a tool is called:")?;
    losses.iter().try_for_each(|loss| console.line(&format!("  {loss}")))
}
