//! `palyra runs abort RUN`: asks for the end of a run, and waits until it has come.

use std::time::Duration;

use clap::Args;
use palyra_client::api::{AbortRunParams, RunView};
use palyra_client::{Client, ClientError, Follow};
use palyra_common::ExitCode;

use super::{RunArgument, report};
use crate::context::Context;
use crate::error::CliError;

/// A tool that does not stop is given up within a moment, so a run that takes longer than this needs a person's attention.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which run, and why.
#[derive(Debug, Args)]
pub(crate) struct AbortArguments {
    #[command(flatten)]
    run: RunArgument,
    /// The reason, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn execute(
    arguments: AbortArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let id = arguments.run.resolve(client).await?;
    let run = client.abort_run(id, &AbortRunParams { reason: arguments.reason }).await?;
    let run = ended(client, run).await?;
    let code = report(&run, context)?;
    if run.phase.is_terminal() {
        return Ok(code);
    }
    context.console.remark(&format!(
        "it was told to stop, but is still running after {} s; to see what becomes of it: palyra runs attach {id}",
        PATIENCE.as_secs()
    ));
    Ok(ExitCode::Precondition)
}

/// The run at its end, or as it is when patience has run out.
async fn ended(client: &Client, run: RunView) -> Result<RunView, CliError> {
    if run.phase.is_terminal() {
        return Ok(run);
    }
    let mut tape = client.tape(run.run_id, run.last_seq.max(1), Follow::UntilEnd);
    let end = async {
        while tape.next().await?.is_some() {}
        Ok::<(), ClientError>(())
    };
    if let Ok(end) = tokio::time::timeout(PATIENCE, end).await {
        end?;
    }
    Ok(client.run(run.run_id).await?.run)
}
