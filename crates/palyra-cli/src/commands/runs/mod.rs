//! `palyra runs …`: looking at runs and steering them.

mod abort;
mod attach;
mod context;
mod envelope;
mod list;
mod pause;
mod replay;
mod resume;
mod send;
mod show;
mod tape;
mod undo;

use clap::{Args, Subcommand};
use palyra_client::Client;
use palyra_common::{ExitCode, RunId};

use crate::context::Context;
use crate::error::CliError;
use crate::{launcher, render, resolve};

const EXAMPLES: &str = "\
RUN is an id, its beginning or its end, or `last`.

Examples:
  palyra runs list --phase waiting_for_approval
  palyra runs attach last
  palyra runs send last \"also check the tests\"
  palyra runs envelope last --allow mcp.mail.send --to ada@example.org
  palyra runs undo last
  palyra runs undo last src/main.rs docs
  palyra runs undo last --conflicts skip";

/// What to do with runs.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum RunsCommand {
    /// List runs, newest first
    List(list::ListArguments),
    /// Show one run: its outcome, answer, intended effects, file changes, time and cost
    Show(RunArgument),
    /// Follow a run to its end, as `palyra run` does; Ctrl-C detaches and the run continues
    Attach(attach::AttachArguments),
    /// Print a run's events, one per line
    Tape(tape::TapeArguments),
    /// Cancel a run and whatever it is doing, and wait for its end; exits with 7 if it does not end within 10 seconds
    Abort(abort::AbortArguments),
    /// Pause a run until it is resumed
    Pause(RunArgument),
    /// Resume a paused run, or one that stopped because of its model or its budget
    Resume(resume::ResumeArguments),
    /// Send another message to a run that is not over
    Send(send::SendArguments),
    /// Show or change the effects outside the workspace that a run is meant to have
    Envelope(envelope::EnvelopeArguments),
    /// Show what the model saw in a turn, part by part, with token counts
    Context(context::ContextArguments),
    /// Replay a run's tape and compare every action, byte for byte
    Replay(RunArgument),
    /// Undo the file changes of a run: all of them, those at some paths, or those that nobody else has changed since
    Undo(undo::UndoArguments),
}

/// The run that is meant.
#[derive(Debug, Args)]
pub(crate) struct RunArgument {
    /// An id, its beginning or its end, or `last`
    #[arg(value_name = "RUN")]
    run: String,
}

impl RunArgument {
    async fn resolve(&self, client: &Client) -> Result<RunId, CliError> {
        resolve::run(client, &self.run).await
    }
}

pub(super) async fn execute(command: RunsCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = launcher::connect(context).await?;
    match command {
        RunsCommand::List(arguments) => list::execute(arguments, &client, context).await,
        RunsCommand::Show(run) => show::execute(&run, &client, context).await,
        RunsCommand::Attach(arguments) => attach::execute(&arguments, context).await,
        RunsCommand::Tape(arguments) => tape::execute(arguments, &client, context).await,
        RunsCommand::Abort(arguments) => abort::execute(arguments, &client, context).await,
        RunsCommand::Pause(run) => pause::execute(&run, &client, context).await,
        RunsCommand::Resume(arguments) => resume::execute(arguments, context).await,
        RunsCommand::Send(arguments) => send::execute(arguments, &client, context).await,
        RunsCommand::Envelope(arguments) => envelope::execute(arguments, &client, context).await,
        RunsCommand::Context(arguments) => context::execute(arguments, &client, context).await,
        RunsCommand::Replay(run) => replay::execute(&run, &client, context).await,
        RunsCommand::Undo(run) => undo::execute(&run, &client, context).await,
    }
}

/// What a command that changed a run's phase prints.
fn report(run: &palyra_client::api::RunView, context: &Context) -> Result<ExitCode, CliError> {
    if context.console.is_text() {
        context.console.line(&format!("run {}: {}", run.run_id, render::runs::outcome(run)))?;
    } else {
        context.console.document(run)?;
    }
    Ok(ExitCode::Ok)
}
