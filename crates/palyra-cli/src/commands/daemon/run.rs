//! `palyra daemon run`: becomes `palyrad`.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;
use palyra_common::{ErrorCategory, ExitCode, env_vars};

use crate::context::Context;
use crate::error::CliError;
use crate::launcher::daemon_program;

/// How to run it.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Leave the terminal's session first; used when a command starts the daemon
    #[arg(long, hide = true)]
    new_session: bool,
    /// Further arguments for palyrad
    #[arg(last = true, value_name = "ARGS")]
    rest: Vec<String>,
}

pub(super) fn execute(arguments: &RunArguments, context: &Context) -> Result<ExitCode, CliError> {
    let program = daemon_program(context)?;
    let failed = |reason: String| CliError::DaemonStart { reason, category: ErrorCategory::Internal, log: Vec::new() };
    if arguments.new_session {
        rustix::process::setsid().map_err(|error| failed(format!("cannot create a new session: {error}")))?;
        // Whatever else the caller had open (a lock, a pipe that somebody waits for the end of) is not the daemon's.
        // A kernel that cannot do this leaves them open, which is no reason not to start.
        let _ = palyra_sandbox::close_on_exec_from(3);
    }
    let mut command = Command::new(&program);
    command.args(&arguments.rest).env(env_vars::PALYRA_STATE_ROOT, context.state_root()?);
    // Returns only if it did not work.
    let error = command.exec();
    Err(failed(format!("cannot run `{}`: {error}", program.display())))
}
