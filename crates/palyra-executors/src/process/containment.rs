//! Whether a program would be contained, and whether one that was decided as contained is.
//!
//! Contained is a program in tier C, as it was seen to hold here, without network and secrets, that can write to the workspace alone, all of which undo takes back. The answer is given from what
//! the plan and the checkpoint of a program are made from, and again from the plan and the checkpoint themselves before the program is executed.

use std::path::Path;
use std::sync::Arc;

use palyra_common::{ErrorCategory, SandboxTier, StableErrorEnvelope};
use palyra_sandbox::{Plan, missing_for};
use palyra_tools::{
    Checkpoint, CheckpointLimits, CheckpointStore, Containment, DecidedAs, Reach, ToolError, Workspace,
};

use super::Processes;
use super::options::ProcessOptions;
use super::readiness::Ready;
use crate::tracking::blocking;

/// Variables that say how a program is to talk, and nothing else.
const HARMLESS: [&str; 12] = [
    "CLICOLOR",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NO_COLOR",
    "PATH",
    "TERM",
    "TZ",
    "USER",
];

impl Processes {
    /// What a program that is started now could reach.
    pub(super) async fn containment(&self, workspace: &Arc<Workspace>) -> Containment {
        let mut reaches = given(&self.options);
        match self.readiness.get().await {
            Ok(ready) => reaches.extend(isolation(&self.options, &ready)),
            Err(error) => reaches.push(Reach::Isolation(error.to_string())),
        }
        if reaches.is_empty() {
            reaches.extend(surveyed(&self.checkpoints, workspace).await);
        }
        Containment::of(reaches)
    }
}

/// What speaks against containing a program that writes to the workspace.
async fn surveyed(checkpoints: &Arc<CheckpointStore>, workspace: &Arc<Workspace>) -> Vec<Reach> {
    let (checkpoints, workspace) = (Arc::clone(checkpoints), Arc::clone(workspace));
    let survey = blocking(move || checkpoints.survey(&workspace, CheckpointLimits::default())).await;
    survey.unwrap_or_else(|error| vec![Reach::Undo(error.to_string())])
}

/// What the operator lets every program have.
fn given(options: &ProcessOptions) -> Vec<Reach> {
    let mut reaches = Vec::new();
    if !options.network.is_empty() {
        reaches.push(Reach::Network);
    }
    if !options.credentials.is_empty() {
        reaches.push(Reach::Credentials("secrets that `process.credentials` names".to_owned()));
    }
    for (name, value) in &options.environment {
        if value.as_deref().is_some_and(|value| may_be_secret(name, value)) {
            reaches.push(Reach::Credentials(format!("the variable `{name}`")));
        }
    }
    reaches
}

/// Whether an inherited variable may hold a secret: anything but words that are none.
fn may_be_secret(name: &str, value: &str) -> bool {
    /// Too short to keep anything from anybody.
    const SHORT: usize = 5;
    let is_locale = name.starts_with("LC_");
    let is_path = |part: &str| Path::new(part).is_absolute() && Path::new(part).exists();
    let are_paths = value.split(':').all(is_path);
    !(is_locale || HARMLESS.contains(&name) || value.len() <= SHORT || are_paths)
}

/// What keeps a program from being isolated.
fn isolation(options: &ProcessOptions, ready: &Ready) -> Option<Reach> {
    if options.tier != SandboxTier::C {
        return Some(Reach::Isolation(format!("programs run in tier {}", options.tier)));
    }
    let missing = missing_for(SandboxTier::C, &ready.host);
    if !missing.is_empty() {
        return Some(Reach::Isolation(missing.join("; ")));
    }
    ready.require(SandboxTier::C).err().map(|error| Reach::Isolation(error.to_string()))
}

/// Fails if a call that was decided as contained would not be, from what it would really be executed with.
pub(super) fn hold_to(
    decided: DecidedAs,
    options: &ProcessOptions,
    plan: &Plan,
    checkpoint: &Checkpoint,
    has_way_out: bool,
) -> Result<(), ToolError> {
    match decided {
        DecidedAs::Reaching => return Ok(()),
        DecidedAs::Contained => {}
    }
    let mut reaches = given(options);
    if has_way_out && !reaches.contains(&Reach::Network) {
        reaches.push(Reach::Network);
    }
    if plan.tier() != SandboxTier::C {
        reaches.push(Reach::Isolation(plan.fell_back().join("; ")));
    }
    reaches.extend(checkpoint.reaches());
    match Containment::of(reaches).reason() {
        None => Ok(()),
        Some(reason) => {
            let message = format!("the program was to be contained and cannot be any more: {reason}");
            let refusal = StableErrorEnvelope::new("not_contained", ErrorCategory::Conflict, message)
                .hint("propose the call again, to have it decided again");
            Err(ToolError::Custom(Box::new(refusal)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_a_secret_is_taken_for_one() {
        for (name, value) in
            [("API_TOKEN", "abcdef"), ("DATABASE_URL", "postgres://a:b@c/d"), ("JAVA_HOME", "/no/such")]
        {
            assert!(may_be_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("LANG", "de_DE.UTF-8"),
            ("LC_ALL", "de_DE.UTF-8"),
            ("CI", "true"),
            ("EMPTY", ""),
            ("JAVA_HOME", "/usr"),
            ("DIRS", "/usr:/etc"),
        ] {
            assert!(!may_be_secret(name, value), "{name}");
        }
    }
}
