//! `palyra runs abort RUN`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::AbortRunParams;
use palyra_common::ExitCode;

use super::{RunArgument, report};
use crate::context::Context;
use crate::error::CliError;

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
    report(&client.abort_run(id, &AbortRunParams { reason: arguments.reason }).await?, context)
}
