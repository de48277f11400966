//! `palyra sandbox …`: what confines processes on this machine. Needs no daemon; the command tries everything by itself.

mod explain;
mod prove;

use clap::Subcommand;
use palyra_common::ExitCode;
use palyra_sandbox::LauncherOptions;

use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
Tools run programs in tier C: their own namespaces, a minimal read-only root, and no network except the egress proxy. Where
the host does not support that, the deployment profile decides whether tier B is enough or the program is refused.

Examples:
  palyra sandbox explain
  palyra sandbox prove";

/// What to do about sandboxes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SandboxCommand {
    /// Show what each tier enforces on this machine, from live probes, and what it cannot
    Explain,
    /// Try to break out of each tier on this machine
    Prove,
}

pub(super) fn execute(command: &SandboxCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        SandboxCommand::Explain => explain::execute(context),
        SandboxCommand::Prove => prove::execute(context),
    }
}

/// This very program becomes the launcher.
fn launcher() -> LauncherOptions {
    LauncherOptions::default()
}
