//! `palyra runs …`: looking at runs and steering them.

mod abort;
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
use crate::{render, resolve};

const EXAMPLES: &str = "\
RUN is an id, its beginning or its end, or `last`.

Examples:
  palyra runs list --phase waiting-for-approval
  palyra runs tape last --follow
  palyra runs send last \"also check the tests\"
  palyra runs envelope last --allow mcp.mail.send --to ada@example.org
  palyra runs undo last";

/// What to do with runs.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum RunsCommand {
    /// List runs, newest first
    List(list::ListArguments),
    /// Show one run: how it ended, what it set out to do, its answer, what it changed, where the time went
    Show(RunArgument),
    /// Print a run's events, one per line
    Tape(tape::TapeArguments),
    /// End a run; whatever it is doing is cancelled
    Abort(abort::AbortArguments),
    /// Hold a run until it is resumed
    Pause(RunArgument),
    /// Let a held run go on, or one that stopped because its model or its budget did
    Resume(resume::ResumeArguments),
    /// Send a further message to a run that is not over
    Send(send::SendArguments),
    /// Show or change what a run is meant to do outside its workspace
    Envelope(envelope::EnvelopeArguments),
    /// Show what the model saw in a turn, part by part, with tokens
    Context(context::ContextArguments),
    /// Feed a run's tape to the run machine again and compare every action, byte for byte
    Replay(RunArgument),
    /// Take back the file changes of a run, all or none
    Undo(RunArgument),
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
    let client = context.client()?;
    match command {
        RunsCommand::List(arguments) => list::execute(arguments, &client, context).await,
        RunsCommand::Show(run) => show::execute(&run, &client, context).await,
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
