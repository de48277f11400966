//! `palyra runs tape RUN`: every event, one per line; text that was streamed is one line per turn.

use clap::Args;
use palyra_client::{Client, Follow};
use palyra_common::{ExitCode, RunStreamEvent};

use super::RunArgument;
use crate::console::OutputFormat;
use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render;
use crate::render::tape::Folded;

/// Which part of which tape.
#[derive(Debug, Args)]
pub(crate) struct TapeArguments {
    #[command(flatten)]
    run: RunArgument,
    /// Start at this position
    #[arg(long, default_value_t = 1, value_name = "SEQ", value_parser = numbers::at_least::<u64>(1))]
    from_seq: u64,
    /// Stop after this many events
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = numbers::at_least::<u64>(1))]
    limit: Option<u64>,
    /// Keep printing events as they happen, until the run is over
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
    let mut folded = Folded::default();
    let print =
        |event: &RunStreamEvent| render::tape::lines(event).iter().try_for_each(|line| context.console.prose(line));
    while left > 0
        && let Some(event) = tape.next().await?
    {
        left -= 1;
        match context.console.output() {
            OutputFormat::Json => all.push(event),
            OutputFormat::Ndjson => context.console.document(&event)?,
            OutputFormat::Text => folded.push(event).iter().try_for_each(print)?,
        }
    }
    folded.finish().iter().try_for_each(print)?;
    if context.console.output() == OutputFormat::Json {
        context.console.document(&all)?;
    }
    Ok(ExitCode::Ok)
}
