//! `palyra models explain`: by the daemon where one runs, which knows which models are cooling down; otherwise by the files.

use std::sync::Arc;

use clap::Args;
use palyra_client::api::{ExplainModelsParams, ExplainModelsResponse, ModelChoiceView, ModelStepView, ProviderView};
use palyra_client::command::Command;
use palyra_common::{AuxiliaryTaskKind, ExitCode, ModelPreference, ToStableError as _};
use palyra_models::{
    Capability, Explanation, HttpProviders, Needs, Purpose, Router, RouterOptions, Standing, Step, Wish, select,
};
use serde_json::json;

use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::table;

/// Standing of a model that cannot do what is needed.
const UNABLE: &str = "unable";

/// For what.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// A model or a route that is asked for by name
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// For this kind of auxiliary task, such as summary
    #[arg(long, value_name = "KIND")]
    task: Option<AuxiliaryTaskKind>,
    /// For this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// What matters most: low_cost, low_latency or vision_capable
    #[arg(long, value_name = "PREFERENCE")]
    prefer: Option<ModelPreference>,
    /// What the model has to be able to do: tools, images, files, structured_output (repeatable)
    #[arg(long = "needs", value_name = "CAPABILITY")]
    needs: Vec<Capability>,
    /// About how many tokens the request is
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = numbers::at_least::<u32>(0))]
    tokens: u32,
}

pub(super) async fn execute(arguments: &ExplainArguments, context: &Context) -> Result<ExitCode, CliError> {
    let params = ExplainModelsParams {
        model: arguments.model.clone(),
        task: arguments.task,
        agent: arguments.agent.clone(),
        prefer: arguments.prefer,
        needs: arguments.needs.iter().map(|one| one.as_str().to_owned()).collect(),
        tokens: arguments.tokens,
    };
    // The daemon knows which models are cooling down; the files alone do not.
    let explained: Option<ExplainModelsResponse> = super::of_daemon(context, &Command::ModelsExplain(params)).await?;
    let console = &context.console;
    if explained.is_some() {
        super::remark_environment(context).await?;
    }
    let (provider, choice) = match explained {
        Some(explained) if !console.is_text() => {
            console.document(&explained)?;
            return Ok(ExitCode::Ok);
        }
        Some(ExplainModelsResponse { provider, choice }) => (provider, choice.map(Shown::from)),
        None => {
            let (provider, explained) = by_files(arguments, context)?;
            if !console.is_text() {
                console.document(&json!({ "provider": provider, "choice": explained }))?;
                return Ok(ExitCode::Ok);
            }
            (provider, explained.map(Shown::from))
        }
    };
    match choice {
        Some(choice) => choice.lines().iter().try_for_each(|line| console.line(line))?,
        None => {
            let name = if provider.model.is_empty() { &provider.name } else { &provider.model };
            console.line(&format!("everything goes to {name}: {}", provider.reason))?;
        }
    }
    Ok(ExitCode::Ok)
}

/// What the files say, as a daemon that starts now would take them.
fn by_files(arguments: &ExplainArguments, context: &Context) -> Result<(ProviderView, Option<Explanation>), CliError> {
    let files = super::Files::read(context)?;
    let chosen = select(&files.options(context)).map_err(|error| CliError::Model(Box::new(error.to_stable())))?;
    let info = chosen.provider.describe();
    let provider = ProviderView { name: info.name, model: info.model, reason: chosen.reason };
    context.console.remark(super::NO_DAEMON);
    if !files.routes_count() {
        return Ok((provider, None));
    }
    let options = RouterOptions::new(Arc::new(HttpProviders), Arc::new(context.environment.clone()));
    let router = Router::new(files.accounts, options)?;
    let wish = Wish {
        purpose: arguments.task.map_or(Purpose::Turn, Purpose::Auxiliary),
        preference: arguments.prefer,
        agent: arguments.agent.as_deref(),
        model: arguments.model.as_deref().unwrap_or_default(),
    };
    let needs = Needs { capabilities: arguments.needs.clone(), tokens: arguments.tokens };
    Ok((provider, Some(router.explain(wish, &needs)?)))
}

/// A choice as it is shown, whoever made it.
struct Shown {
    route: String,
    reason: String,
    steps: Vec<ShownStep>,
}

struct ShownStep {
    is_asked: bool,
    model: String,
    keys: Vec<String>,
    destination: String,
    remark: String,
}

impl From<ModelChoiceView> for Shown {
    fn from(choice: ModelChoiceView) -> Self {
        let step = |step: ModelStepView| ShownStep {
            is_asked: step.standing != UNABLE,
            model: step.target.name,
            keys: step.target.credentials,
            destination: step.target.destination,
            remark: step.remark,
        };
        Self { route: choice.route, reason: choice.reason, steps: choice.steps.into_iter().map(step).collect() }
    }
}

impl From<Explanation> for Shown {
    fn from(choice: Explanation) -> Self {
        let step = |step: Step| ShownStep {
            is_asked: step.standing != Standing::Unable,
            model: step.target.name.to_string(),
            keys: step.target.credentials,
            destination: step.target.destination,
            remark: step.remark,
        };
        Self { route: choice.route, reason: choice.reason, steps: choice.steps.into_iter().map(step).collect() }
    }
}

impl Shown {
    fn lines(&self) -> Vec<String> {
        let mut place = 0;
        let row = |step: &ShownStep| {
            place += u32::from(step.is_asked);
            let asked = if step.is_asked { place.to_string() } else { "-".to_owned() };
            let keys = if step.keys.is_empty() { "-".to_owned() } else { step.keys.join(" ") };
            [asked, step.model.clone(), keys, one_line(&step.destination), one_line(&step.remark)]
        };
        let rows: Vec<[String; 5]> = self.steps.iter().map(row).collect();
        let mut lines = vec![format!("{}, because {}:", self.route, self.reason)];
        lines.extend(table::lines(["ASKED", "MODEL", "KEYS", "SENT TO", "REMARK"], &rows));
        lines
    }
}
