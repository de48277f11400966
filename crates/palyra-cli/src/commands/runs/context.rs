//! `palyra runs context RUN`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{RunContextParams, RunContextResponse};
use palyra_common::ExitCode;

use super::RunArgument;
use crate::context::Context;
use crate::error::CliError;
use crate::render::table;

/// Characters of a part that the table shows.
const SHOWN: usize = 60;

/// Which context.
#[derive(Debug, Args)]
pub(crate) struct ContextArguments {
    #[command(flatten)]
    run: RunArgument,
    /// The context of this turn instead of the newest
    #[arg(long, value_name = "NUMBER")]
    turn: Option<u32>,
    /// Print the parts whole, one after the other
    #[arg(long)]
    full: bool,
}

pub(super) async fn execute(
    arguments: ContextArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let run = arguments.run.resolve(client).await?;
    let seen = client.run_context(run, &RunContextParams { turn: arguments.turn }).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&seen)?;
    } else if arguments.full {
        for (number, segment) in seen.segments.iter().enumerate() {
            console.line(&format!("── {number} {} {} ({} tokens)", segment.kind, segment.source, segment.tokens))?;
            console.line(&segment.text)?;
        }
    } else {
        lines(&seen).iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn lines(seen: &RunContextResponse) -> Vec<String> {
    let percent = u64::from(seen.tokens) * 100 / u64::from(seen.window.max(1));
    let mut lines = vec![format!(
        "turn {} of {}: about {} of {} tokens ({percent} %), the first {} messages are the same in every turn",
        seen.turn, seen.turns, seen.tokens, seen.window, seen.stable_messages
    )];
    if !seen.exact {
        lines.push("not exactly what was sent: the digest recorded with the call is another one".to_owned());
    }
    let rows: Vec<[String; 5]> = seen
        .segments
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
    lines.extend(table::lines(["#", "PART", "TOKENS", "TRUST", "WHAT"], &rows));
    lines
}
