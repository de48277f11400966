//! `palyra config set KEY VALUE`.

use clap::Args;
use palyra_common::{config, paths};

use crate::context::Context;
use crate::error::CliError;

/// Which key, and its new value.
#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// The key, such as run.max_turns
    key: String,
    /// The new value; several items of a list are separated by commas
    #[arg(allow_hyphen_values = true)]
    value: String,
}

pub(super) fn execute(arguments: &SetArguments, context: &Context) -> Result<(), CliError> {
    let path = paths::config_to_edit(&context.environment)?;
    super::report(&config::set(&path, &arguments.key, &arguments.value, &context.environment)?, context)
}
