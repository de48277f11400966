//! `palyra runs context RUN`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ContextSegmentView, RunContextParams, RunContextResponse, RunView};
use palyra_client::command::{About, Command};
use palyra_common::ExitCode;

use super::RunArgument;
use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::table;

/// Characters of a part that the table shows.
const SHOWN: usize = 60;

/// Which context.
#[derive(Debug, Args)]
pub(crate) struct ContextArguments {
    #[command(flatten)]
    run: RunArgument,
    /// The context of this turn instead of the newest
    #[arg(long, value_name = "NUMBER", value_parser = numbers::at_least::<u32>(1))]
    turn: Option<u32>,
    /// Print the parts whole, one after the other
    #[arg(long)]
    full: bool,
    /// Also show what a summary stands for, as it was
    #[arg(long)]
    originals: bool,
    /// Take the newest summary of a held run back, so that its next turn sees the originals again
    #[arg(long, conflicts_with_all = ["turn", "full", "originals"])]
    revert: bool,
}

pub(super) async fn execute(
    arguments: ContextArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let run = arguments.run.resolve(client).await?;
    if arguments.revert {
        let run: RunView = client.execute(&Command::RunCompactRevert(About::only(run))).await?;
        return super::report(&run, context);
    }
    let params = RunContextParams { turn: arguments.turn, originals: arguments.originals };
    let seen = client.run_context(run, &params).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&seen)?;
    } else if arguments.full {
        whole(&seen.segments, context)?;
        if !seen.originals.is_empty() {
            console.line("what the summary stands for:")?;
            whole(&seen.originals, context)?;
        }
    } else {
        lines(&seen).iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn lines(seen: &RunContextResponse) -> Vec<String> {
    let percent = u64::from(seen.tokens) * 100 / u64::from(seen.window.max(1));
    let counted = seen.counted.map(|counted| format!("; the provider counted {counted}")).unwrap_or_default();
    let mut lines = vec![format!(
        "turn {} of {}: about {} of {} tokens ({percent} %){counted}; the first {} messages are the same in every turn",
        seen.turn, seen.turns, seen.tokens, seen.window, seen.stable_messages
    )];
    if !seen.exact {
        lines.push("not exactly what was sent: the digest recorded with the call is another one".to_owned());
    }
    lines.extend(parts(&seen.segments));
    if !seen.originals.is_empty() {
        lines.push("what the summary stands for:".to_owned());
        lines.extend(parts(&seen.originals));
    }
    lines
}

/// The parts whole, one after the other.
fn whole(segments: &[ContextSegmentView], context: &Context) -> Result<(), CliError> {
    for (number, segment) in segments.iter().enumerate() {
        let head = format!("── {number} {} {} ({} tokens)", segment.kind, segment.source, segment.tokens);
        context.console.line(&head)?;
        context.console.line(&segment.text)?;
    }
    Ok(())
}

fn parts(segments: &[ContextSegmentView]) -> Vec<String> {
    let rows: Vec<[String; 5]> = segments
        .iter()
        .enumerate()
        .map(|(number, segment)| {
            let label = segment.label.as_ref().map(|label| label.integrity.to_string()).unwrap_or_default();
            let source = if segment.source.is_empty() { String::new() } else { format!("{}: ", segment.source) };
            let text: String = format!("{source}{}", segment.text.split_whitespace().collect::<Vec<_>>().join(" "));
            let shown = match text.char_indices().nth(SHOWN) {
                Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
                None => text,
            };
            [number.to_string(), segment.kind.clone(), segment.tokens.to_string(), label, shown]
        })
        .collect();
    table::lines(["#", "PART", "TOKENS", "TRUST", "WHAT"], &rows)
}
