//! `palyra models explain`.

use std::sync::Arc;

use clap::Args;
use palyra_common::{AuxiliaryTaskKind, ExitCode, ModelPreference, ToStableError as _};
use palyra_models::{Capability, HttpProviders, Needs, Purpose, Router, RouterOptions, Standing, Wish, select};
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::shortened;

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
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    tokens: u32,
}

pub(super) fn execute(arguments: &ExplainArguments, context: &Context) -> Result<ExitCode, CliError> {
    let files = super::Files::read(context)?;
    let console = &context.console;
    if !files.routes_count() {
        let chosen = select(&files.options(context)).map_err(|error| CliError::Model(Box::new(error.to_stable())))?;
        if !console.is_text() {
            console.document(&json!({ "provider": chosen.provider.describe(), "reason": chosen.reason }))?;
            return Ok(ExitCode::Ok);
        }
        console.line(&format!("everything goes to {}: {}", chosen.provider.name(), chosen.reason))?;
        return Ok(ExitCode::Ok);
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
    let explained = router.explain(wish, &needs)?;
    if !console.is_text() {
        console.document(&explained)?;
        return Ok(ExitCode::Ok);
    }
    console.line(&format!("{}, because {}:", explained.route, explained.reason))?;
    let mut place = 0;
    let rows: Vec<[String; 5]> = explained
        .steps
        .iter()
        .map(|step| {
            let asked = match step.standing {
                Standing::Ready | Standing::Rests => {
                    place += 1;
                    place.to_string()
                }
                Standing::Unable => "-".to_owned(),
            };
            let target = &step.target;
            let keys = if target.credentials.is_empty() { "-".to_owned() } else { target.credentials.join(" ") };
            [asked, target.name.to_string(), keys, shortened(&target.destination, 60), step.remark.clone()]
        })
        .collect();
    let lines = table::lines(["ASKED", "MODEL", "KEYS", "SENT TO", "REMARK"], &rows);
    lines.iter().try_for_each(|line| console.line(line))?;
    Ok(ExitCode::Ok)
}
