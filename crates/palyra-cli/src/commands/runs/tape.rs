//! `palyra runs tape RUN`: every event, one per line.

use clap::Args;
use palyra_client::{Client, Follow};
use palyra_common::ExitCode;

use super::RunArgument;
use crate::console::OutputFormat;
use crate::context::Context;
use crate::error::CliError;
use crate::render;

/// Which part of which tape.
#[derive(Debug, Args)]
pub(crate) struct TapeArguments {
    #[command(flatten)]
    run: RunArgument,
    /// Begin at this position
    #[arg(long, default_value_t = 1, value_name = "SEQ")]
    from_seq: u64,
    /// Stop after so many events
    #[arg(short = 'n', long, value_name = "COUNT")]
    limit: Option<u64>,
    /// Wait for events that are yet to come, until the run is over
    #[arg(short, long)]
    follow: bool,
}

pub(super) async fn execute(
    arguments: TapeArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let id = arguments.run.resolve(client).await?;
    let follow = if arguments.follow { Follow::UntilEnd } else { Follow::No };
    let mut tape = client.tape(id, arguments.from_seq, follow);
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    let mut all = Vec::new();
    while left > 0
        && let Some(event) = tape.next().await?
    {
        left -= 1;
        match context.console.output() {
            OutputFormat::Json => all.push(event),
            OutputFormat::Ndjson => context.console.document(&event)?,
            OutputFormat::Text => context.console.line(&render::tape::line(&event))?,
        }
    }
    if context.console.output() == OutputFormat::Json {
        context.console.document(&all)?;
    }
    Ok(ExitCode::Ok)
}
