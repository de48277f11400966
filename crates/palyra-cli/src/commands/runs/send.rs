//! `palyra runs send RUN TEXT`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::RunInputParams;
use palyra_common::ExitCode;
use palyra_common::InputMode;

use super::{RunArgument, report};
use crate::context::Context;
use crate::error::CliError;

/// Which run, and what to tell it.
#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    #[command(flatten)]
    run: RunArgument,
    /// The message
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    /// Interrupt what the run is doing instead of waiting for it
    #[arg(long)]
    interrupt: bool,
}

pub(super) async fn execute(
    arguments: SendArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let text = arguments.text.join(" ");
    if text.trim().is_empty() {
        return Err(CliError::TaskEmpty);
    }
    let mode = if arguments.interrupt { InputMode::Interrupt } else { InputMode::FollowUp };
    let id = arguments.run.resolve(client).await?;
    report(&client.send_input(id, &RunInputParams { text, mode }).await?, context)
}
