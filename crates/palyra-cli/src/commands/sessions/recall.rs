//! `palyra sessions recall QUERY`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{RecallParams, RecallResponse, RecalledView};
use palyra_client::command::Command;
use palyra_common::ExitCode;

use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::text::shortened;
use crate::resolve;

/// Characters of a piece that are shown.
const SHOWN: usize = 300;

/// What is looked for.
#[derive(Debug, Args)]
pub(crate) struct RecallArguments {
    /// What to look for, in plain words
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,
    /// Only in this session: an id, its beginning or its end, a key, or `last`
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,
    /// How many results at most
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = numbers::between::<u32>(1, 24))]
    limit: Option<u32>,
}

pub(super) async fn execute(
    arguments: &RecallArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let session_id = match &arguments.session {
        Some(session) => Some(resolve::session(client, session).await?),
        None => None,
    };
    let params = RecallParams { query: arguments.query.join(" "), session_id, limit: arguments.limit };
    let found: RecallResponse = client.execute(&Command::SessionRecall(params)).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&found)?;
        return Ok(ExitCode::Ok);
    }
    if found.pieces.is_empty() {
        console.remark("nothing of what was asked or answered fits");
    }
    for piece in &found.pieces {
        lines(piece).iter().try_for_each(|line| console.line(line))?;
    }
    found.note.iter().for_each(|note| console.remark(&format!("note: {note}")));
    Ok(ExitCode::Ok)
}

fn lines(piece: &RecalledView) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{:.2}  {} in run {} (session {}, event {}), {}",
            piece.score, piece.said, piece.run_id, piece.session_id, piece.seq, piece.label.integrity
        ),
        format!("      {}", shortened(&one_line(&piece.text), SHOWN)),
    ];
    if !piece.why.is_empty() {
        lines.push(format!("      why: {}", shortened(&one_line(&piece.why), SHOWN)));
    }
    lines
}
