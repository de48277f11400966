//! `palyra config …`: works on the file and the environment, with or without a daemon.

mod explain;
mod get;
mod list;
mod path;
mod set;
mod unset;
mod validate;

use clap::{Args, Subcommand};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
A value comes from the first of: environment variable, file, deployment profile, default.

Examples:
  palyra config list
  palyra config explain run.max_turns
  palyra config set model.base_url http://127.0.0.1:11434/v1
  palyra config set model.api_key env:MY_KEY";

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum ConfigCommand {
    /// List every key with its value and where the value came from
    List,
    /// Print the value of one key
    Get(KeyArgument),
    /// Set a key in the file, keeping comments; an invalid value is refused
    Set(set::SetArguments),
    /// Remove a key from the file, so that the profile or default applies
    Unset(KeyArgument),
    /// Explain one key: what it does, its value, where the value comes from, how to change it
    Explain(KeyArgument),
    /// Check the file and the environment
    Validate,
    /// Print where the configuration file is, or would be
    Path,
}

/// The key that is meant.
#[derive(Debug, Args)]
pub(crate) struct KeyArgument {
    /// The key, such as run.max_turns
    key: String,
}

pub(super) fn execute(command: ConfigCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        ConfigCommand::List => list::execute(context),
        ConfigCommand::Get(argument) => get::execute(&argument.key, context),
        ConfigCommand::Set(arguments) => set::execute(&arguments, context),
        ConfigCommand::Unset(argument) => unset::execute(&argument.key, context),
        ConfigCommand::Explain(argument) => explain::execute(&argument.key, context),
        ConfigCommand::Validate => validate::execute(context),
        ConfigCommand::Path => path::execute(context),
    }?;
    Ok(ExitCode::Ok)
}

/// What a change did, and what else it takes to be seen.
fn report(edit: &palyra_common::config::ConfigEdit, context: &Context) -> Result<(), CliError> {
    let console = &context.console;
    if !console.is_text() {
        return console.document(&serde_json::json!({
            "path": edit.path, "key": edit.key, "before": edit.before, "after": edit.after,
            "overridden_by": edit.overridden_by,
        }));
    }
    if edit.before == edit.after {
        return console.line(&format!(
            "unchanged: {} is already {} in `{}`",
            edit.key,
            edit.after,
            edit.path.display()
        ));
    }
    console.line(&format!("{}: {} → {} in `{}`", edit.key, edit.before, edit.after, edit.path.display()))?;
    if let Some(variable) = &edit.overridden_by {
        console.remark(&format!("note: the environment variable {variable} still overrides it"));
    }
    let restart = palyra_common::config::find_key(edit.key).map(palyra_common::config::KeySpec::restart);
    if restart == Some(palyra_common::config::Restart::Needed) {
        console.remark("note: takes effect when the daemon restarts; stop it with `palyra daemon stop`");
    }
    Ok(())
}
