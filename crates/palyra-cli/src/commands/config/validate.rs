//! `palyra config validate`: `palyra.toml` with the environment, and `models.toml` and `prices.toml` beside it.

use palyra_common::{config, paths};
use palyra_models::{Accounts, PriceTable};
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(context: &Context) -> Result<(), CliError> {
    let loaded = config::load(&context.environment)?;
    let models = paths::models_file(&context.environment).ok().filter(|path| path.exists());
    if let Some(path) = &models {
        Accounts::load(path)?;
    }
    let named = loaded.config().budget.prices.clone();
    let beside = || paths::config_to_edit(&context.environment).ok().map(|config| paths::prices_file(&config));
    let prices = named.clone().or_else(|| beside().filter(|path| path.exists()));
    PriceTable::load(prices.as_deref(), named.is_some())?;
    if !context.console.is_text() {
        return context.console.document(&json!({
            "valid": true, "file": loaded.file(), "models_file": models, "prices_file": prices,
            "warnings": loaded.warnings(),
        }));
    }
    for warning in loaded.warnings() {
        context.console.remark(&format!("warning: {warning}"));
    }
    context.console.line(&match loaded.file() {
        Some(file) => format!("OK: `{}`", file.display()),
        None => "OK: no configuration file; environment and defaults are valid".to_owned(),
    })?;
    [models, prices].iter().flatten().try_for_each(|path| context.console.line(&format!("OK: `{}`", path.display())))
}
