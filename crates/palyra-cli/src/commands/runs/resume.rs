//! `palyra runs resume RUN`.

use palyra_client::Client;
use palyra_common::ExitCode;

use super::{RunArgument, report};
use crate::context::Context;
use crate::error::CliError;

pub(super) async fn execute(run: &RunArgument, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    report(&client.resume_run(run.resolve(client).await?).await?, context)
}
