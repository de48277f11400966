//! Which policies a command is about.

use std::fs;
use std::path::Path;

use palyra_common::config;
use palyra_policy::{PolicySet, PolicySource, PolicySources};

use crate::context::Context;
use crate::error::CliError;

fn sources(context: &Context) -> Result<PolicySources, CliError> {
    let loaded = config::load(&context.environment)?;
    let shipped = PolicySources::shipped();
    Ok(match &loaded.config().policy.directory {
        Some(directory) => shipped.with_directory(context.environment.absolute(directory)),
        None => shipped,
    })
}

/// The set in force.
pub(super) fn in_force(context: &Context) -> Result<PolicySet, CliError> {
    Ok(PolicySet::load(&sources(context)?)?)
}

/// What a proposal would put in force: a directory replaces the operator's, a file joins it or replaces its namesake.
pub(super) fn proposed(proposal: &Path, context: &Context) -> Result<PolicySet, CliError> {
    let path = context.environment.absolute(proposal);
    let sources = if path.is_dir() {
        if fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none()) {
            let note = format!("note: `{}` is empty, so only the shipped policies apply", path.display());
            context.console.remark(&note);
        }
        PolicySources::shipped().with_directory(path)
    } else {
        sources(context)?.with_override(PolicySource::read(&path)?)
    };
    Ok(PolicySet::load(&sources)?)
}

/// The proposal if there is one, otherwise the set in force.
pub(super) fn chosen(proposal: Option<&Path>, context: &Context) -> Result<PolicySet, CliError> {
    proposal.map_or_else(|| in_force(context), |proposal| proposed(proposal, context))
}
