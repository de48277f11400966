//! `palyra models …`: which models are asked, with which keys, in which order.
//!
//! The daemon makes the calls, so what is said here is what it says, in its own environment; where this program's environment has a variable that
//! the daemon lacks, that is pointed out. Without a daemon the files and this environment are what a daemon that starts now would have.

mod discover;
mod explain;
mod list;
mod set_default;
mod test;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use palyra_client::api::ModelsStatusResponse;
use palyra_client::command::{Command, NoParams};
use palyra_common::config::{self, ModelConfig, ModelProviderChoice};
use palyra_common::{ExitCode, paths};
use palyra_models::{Accounts, HttpProviders, Offer, SelectOptions, select, set_variables};

use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
A model is written PROVIDER/MODEL. Providers, their keys and the order in which models are asked are in models.toml, beside palyra.toml.
Nothing is sent to a provider that you have not named.

Examples:
  palyra models discover                                  what you could use: keys, servers on this machine
  palyra models set-default anthropic/claude-sonnet-4-5   use it instead of the present default
  palyra models set-default home/qwen3 --fallback anthropic/claude-sonnet-4-5
  palyra models test                                      one tool call with each key
  palyra models list ollama                               ask a server which models it has
  palyra models explain --task summary";

/// Said where only the files are known.
const NO_DAEMON: &str = "note: no daemon is running, so it is not known which models are cooling down";

/// How a daemon gets the present environment.
const RESTART: &str = "to restart it with this environment: palyra daemon stop && palyra daemon start";

/// What to do with models.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ModelsCommand {
    /// List the models of all routes, or those that a provider offers
    List(list::ListArguments),
    /// Have a model call a tool and answer, with what a run sends first, and say in one line what happened and what to do
    Test(test::TestArguments),
    /// Find keys in the environment and model servers on this machine; uses none of them
    Discover,
    /// Use a model for everything that names no other
    SetDefault(set_default::SetDefaultArguments),
    /// Say which models would be asked, in which order, and why
    Explain(explain::ExplainArguments),
}

pub(super) async fn execute(command: ModelsCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        ModelsCommand::List(arguments) => list::execute(&arguments, context).await,
        ModelsCommand::Test(arguments) => test::execute(&arguments, context).await,
        ModelsCommand::Discover => discover::execute(context).await,
        ModelsCommand::SetDefault(arguments) => set_default::execute(&arguments, context).await,
        ModelsCommand::Explain(arguments) => explain::execute(&arguments, context).await,
    }
}

/// The files as they are now.
struct Files {
    model: ModelConfig,
    accounts: Accounts,
    path: PathBuf,
}

impl Files {
    fn read(context: &Context) -> Result<Self, CliError> {
        let model = config::load(&context.environment)?.config().model.clone();
        let path = paths::models_file(&context.environment)?;
        Ok(Self { model, accounts: Accounts::load(&path)?, path })
    }

    /// Whether the routes of `models.toml` are what counts.
    fn routes_count(&self) -> bool {
        self.model.provider == ModelProviderChoice::Auto && !self.accounts.routes.default.is_empty()
    }

    /// What a choice is made from, with the keys that this program may read.
    fn options<'a>(&'a self, context: &'a Context) -> SelectOptions<'a> {
        SelectOptions {
            config: &self.model,
            accounts: &self.accounts,
            environment: &context.environment,
            secrets: Arc::new(context.environment.clone()),
            factory: Arc::new(HttpProviders),
            memory: None,
        }
    }
}

/// What the daemon answers, if one runs.
async fn of_daemon<T: DeserializeOwned>(context: &Context, command: &Command) -> Result<Option<T>, CliError> {
    match context.client()?.execute(command).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_unreachable() && context.address().is_none() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Points out what the daemon does not have of this environment. A daemon that was named by its address has another one by nature.
async fn remark_environment(context: &Context) -> Result<(), CliError> {
    if context.address().is_some() {
        return Ok(());
    }
    let status: Option<ModelsStatusResponse> = of_daemon(context, &Command::ModelsStatus(NoParams {})).await?;
    if let Some(difference) = status.and_then(|status| environment_difference(context, &status)) {
        context.console.remark(&difference);
    }
    Ok(())
}

/// What the daemon does not have of this environment, and how to pass it on.
fn environment_difference(context: &Context, status: &ModelsStatusResponse) -> Option<String> {
    let files = Files::read(context).ok()?;
    let here = set_variables(&context.environment, &files.accounts);
    let missing: Vec<String> = here.into_iter().filter(|name| !status.variables.contains(name)).collect();
    let (what, it) = match missing.as_slice() {
        [] => {
            // The same variables may hold something else.
            let own = select(&files.options(context)).ok()?;
            let differs = own.reason != status.provider.reason && status.problem.is_none();
            return differs.then(|| {
                format!(
                    "note: the daemon was started with other settings: with those of this shell, {}; {RESTART}",
                    own.reason
                )
            });
        }
        [one] => (format!("{one} is"), "it"),
        several => (format!("{} are", several.join(", ")), "them"),
    };
    Some(format!(
        "note: {what} set in this shell but not in the daemon's environment, so runs do not have {it}; {RESTART}"
    ))
}

/// Everything that could be used.
async fn offers(context: &Context) -> Vec<Offer> {
    context.console.progress("looking for model servers…");
    let offers = palyra_models::discover(&context.environment).await;
    context.console.wipe_progress();
    offers
}
