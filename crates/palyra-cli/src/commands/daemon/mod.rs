//! `palyra daemon …`.

mod logs;
mod run;
mod start;
mod status;
mod stop;

use clap::Subcommand;
use palyra_client::api::HealthResponse;
use palyra_common::ExitCode;

use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;
use crate::render::text::millis;

const EXAMPLES: &str = "\
Commands that need the daemon start it by themselves; these manage it.

Examples:
  palyra daemon status
  palyra daemon logs -f
  PALYRA_STATE_ROOT=/tmp/try palyra daemon run     in the foreground, with its own state";

/// What to do with the daemon.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum DaemonCommand {
    /// Start it in the background, unless it is running
    Start,
    /// Stop it cleanly; unfinished runs go on after the next start
    Stop,
    /// Show whether it runs and how it is doing; exits with 4 if it is not running, with 7 if it is degraded or failing
    Status,
    /// Print the end of its log
    Logs(logs::LogsArguments),
    /// Run it in the foreground
    Run(run::RunArguments),
}

pub(super) async fn execute(command: DaemonCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        DaemonCommand::Start => start::execute(context).await,
        DaemonCommand::Stop => stop::execute(context).await,
        DaemonCommand::Status => status::execute(context).await,
        DaemonCommand::Logs(arguments) => logs::execute(&arguments, context).await,
        DaemonCommand::Run(arguments) => run::execute(&arguments, context),
    }
}

fn lines(health: &HealthResponse) -> Vec<String> {
    let mut lines = vec![
        format!("status    {}", health.status),
        format!("process   {}, up {}", health.pid, millis(health.uptime_ms)),
        format!("version   {}", one_line(&health.version)),
        format!("state     {}", one_line(&health.state_root)),
        format!("model     {} ({})", one_line(&health.provider.model), one_line(&health.provider.name)),
    ];
    // The part of the daemon that looks after the provider usually gives the reason itself.
    if !health.components.iter().any(|part| part.summary.contains(&health.provider.reason)) {
        lines.push(format!("          {}", one_line(&health.provider.reason)));
    }
    for part in &health.components {
        lines.push(format!("{:<9} {}: {}", one_line(&part.component), part.status, one_line(&part.summary)));
        if let Some(hint) = &part.hint {
            lines.push(format!("          hint: {}", one_line(hint)));
        }
    }
    lines
}
