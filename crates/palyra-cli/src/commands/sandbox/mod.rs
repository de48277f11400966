//! `palyra sandbox …`: what confines processes on this machine. Needs no daemon; the command tries everything by itself.

mod explain;
mod prove;

use clap::Subcommand;
use palyra_common::ExitCode;
use palyra_sandbox::LauncherOptions;

use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
Programs that tools start run in tier C: namespaces of their own, a minimal read-only root, no network but the egress proxy. Where
the host cannot give that, the deployment profile says whether tier B is enough or the program is refused.

Examples:
  palyra sandbox explain
  palyra sandbox prove";

/// What to do about sandboxes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SandboxCommand {
    /// Say what each tier gives on this machine, from live probes, and what it cannot give
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
