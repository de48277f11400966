//! `palyra config validate`: `palyra.toml` with the environment, and `models.toml` beside it.

use palyra_common::{config, paths};
use palyra_models::Accounts;
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(context: &Context) -> Result<(), CliError> {
    let loaded = config::load(&context.environment)?;
    let models = paths::models_file(&context.environment).ok().filter(|path| path.exists());
    if let Some(path) = &models {
        Accounts::load(path)?;
    }
    if !context.console.is_text() {
        return context.console.document(
            &json!({ "valid": true, "file": loaded.file(), "models_file": models, "warnings": loaded.warnings() }),
        );
    }
    for warning in loaded.warnings() {
        context.console.remark(&format!("warning: {warning}"));
    }
    context.console.line(&match loaded.file() {
        Some(file) => format!("OK: `{}`", file.display()),
        None => "OK: no configuration file; environment and defaults are valid".to_owned(),
    })?;
    match models {
        Some(path) => context.console.line(&format!("OK: `{}`", path.display())),
        None => Ok(()),
    }
}
