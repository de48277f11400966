//! `palyra runs context RUN`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ContextSegmentView, RunContextParams, RunContextResponse, RunView, WireCostView};
use palyra_client::command::{About, Command};
use palyra_common::ExitCode;

use super::RunArgument;
use crate::console::{one_line, plain};
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
    let mut lines = vec![headline(seen)];
    if !seen.exact {
        lines.push("not exactly what was sent: the digest recorded with the call differs".to_owned());
    }
    lines.extend(parts(&seen.segments));
    lines.extend(tools(seen));
    lines.extend(wires(&seen.wires));
    if !seen.originals.is_empty() {
        lines.push("what the summary stands for:".to_owned());
        lines.extend(parts(&seen.originals));
    }
    lines
}

fn headline(seen: &RunContextResponse) -> String {
    let RunContextResponse { turn, turns, tokens, window, stable_messages, .. } = seen;
    let model = if seen.model.is_empty() { String::new() } else { format!(" for `{}`", one_line(&seen.model)) };
    if !seen.language_model {
        return format!(
            "turn {turn} of {turns}: about {tokens} tokens{model}, which is not a language model: it reads no tool descriptions and has no window"
        );
    }
    let percent = u64::from(*tokens) * 100 / u64::from((*window).max(1));
    let counted = seen.counted.map(|counted| format!("; the provider counted {counted}")).unwrap_or_default();
    format!(
        "turn {turn} of {turns}: at most {tokens} of {window} tokens ({percent} %){model}{counted}; the first {stable_messages} messages are the same in every turn"
    )
}

/// Which tools the model was told about, and which it could have searched for.
fn tools(seen: &RunContextResponse) -> Vec<String> {
    if !seen.language_model {
        return Vec::new();
    }
    let names = |core: bool| -> Vec<&str> {
        seen.offered_tools.iter().filter(|tool| tool.core == core).map(|tool| tool.name.as_str()).collect()
    };
    let line = |what: &str, names: Vec<&str>| {
        (!names.is_empty()).then(|| format!("{what} ({}): {}", names.len(), names.join(", ")))
    };
    let deferred = seen.deferred_tools.iter().map(String::as_str).collect();
    let lines = [
        line("core tools", names(true)),
        line("more tools", names(false)),
        line("found by palyra.tools.search", deferred),
    ];
    lines.into_iter().flatten().collect()
}

/// What the request costs on each wire.
fn wires(wires: &[WireCostView]) -> Vec<String> {
    if wires.is_empty() {
        return Vec::new();
    }
    let rows: Vec<[String; 9]> = wires
        .iter()
        .map(|cost| {
            let WireCostView { wire, system, core_tools, extra_tools, project, history, task, steps, total } = cost;
            let number = |tokens: &u64| tokens.to_string();
            [
                wire.clone(),
                number(system),
                number(core_tools),
                number(extra_tools),
                number(project),
                number(history),
                number(task),
                number(steps),
                number(total),
            ]
        })
        .collect();
    let head = ["WIRE", "SYSTEM", "CORE TOOLS", "MORE TOOLS", "PROJECT", "HISTORY", "TASK", "STEPS", "TOTAL"];
    let title = "tokens of this request on each wire, counted with o200k_base:".to_owned();
    std::iter::once(title).chain(table::lines(head, &rows)).collect()
}

/// The parts whole, one after the other.
fn whole(segments: &[ContextSegmentView], context: &Context) -> Result<(), CliError> {
    for (number, segment) in segments.iter().enumerate() {
        let head = format!("── {number} {} {} ({} tokens)", segment.kind, segment.source, segment.tokens);
        context.console.line(&one_line(&head))?;
        context.console.line(&plain(&segment.text))?;
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
