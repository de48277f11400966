//! `palyra models set-default PROVIDER/MODEL`.

use clap::Args;
use palyra_common::ExitCode;
use palyra_common::config::ModelProviderChoice;
use palyra_models::{ModelName, adopt};
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

/// Which model.
#[derive(Debug, Args)]
pub(crate) struct SetDefaultArguments {
    /// The model, such as anthropic/claude-sonnet-4-5
    #[arg(value_name = "PROVIDER/MODEL")]
    model: ModelName,
}

pub(super) async fn execute(arguments: &SetDefaultArguments, context: &Context) -> Result<ExitCode, CliError> {
    let files = super::Files::read(context)?;
    let model = &arguments.model;
    let is_known = files.accounts.providers.contains_key(&model.provider);
    // Only one that the file does not have is looked for.
    let offers = if is_known { Vec::new() } else { super::offers(context).await };
    let accounts = adopt(&files.path, &offers, model)?;
    let destination = accounts.providers.get(&model.provider).map(|account| account.destination()).unwrap_or_default();
    let console = &context.console;
    let overridden = (files.model.provider != ModelProviderChoice::Auto).then_some(files.model.provider);
    if !console.is_text() {
        console.document(&json!({
            "path": files.path, "default": accounts.routes.default, "sent_to": destination,
            "overridden_by": overridden.map(|provider| format!("model.provider = {provider}")),
        }))?;
        return Ok(ExitCode::Ok);
    }
    console.line(&format!("{model} is asked first, in `{}`", files.path.display()))?;
    console.line(&format!("conversations are sent to {destination}"))?;
    let rest: Vec<String> = accounts.routes.default.iter().skip(1).map(ToString::to_string).collect();
    if !rest.is_empty() {
        console.line(&format!("if it fails: {}", rest.join(", then ")))?;
    }
    if let Some(provider) = overridden {
        console.remark(&format!(
            "note: `model.provider` is `{provider}`, which goes before models.toml; to let it go: palyra config unset model.provider"
        ));
    }
    console.remark("note: a running daemon sees it after `palyra daemon stop` and the next start; to try it now: palyra models test");
    Ok(ExitCode::Ok)
}
