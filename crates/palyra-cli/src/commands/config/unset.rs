//! `palyra config unset KEY`.

use palyra_common::{config, paths};

use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(key: &str, context: &Context) -> Result<(), CliError> {
    let path = paths::config_to_edit(&context.environment)?;
    super::report(&config::unset(&path, key, &context.environment)?, context)
}
