//! `palyra runs show RUN`.

use palyra_client::Client;
use palyra_common::ExitCode;

use super::RunArgument;
use crate::context::Context;
use crate::error::CliError;
use crate::render;

pub(super) async fn execute(run: &RunArgument, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let detail = client.run(run.resolve(client).await?).await?;
    if context.console.is_text() {
        render::runs::page(&detail).iter().try_for_each(|line| context.console.prose(line))?;
    } else {
        context.console.document(&detail)?;
    }
    Ok(ExitCode::Ok)
}
