//! `palyra canvas list`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{CanvasView, ListCanvasesParams, ListCanvasesResponse};
use palyra_client::command::Command;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::{instant, shortened};
use crate::resolve;

/// Which canvases.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only those of one session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Also those that were closed
    #[arg(long)]
    all: bool,
}

pub(super) async fn execute(
    arguments: &ListArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let session_id = match &arguments.session {
        Some(session) => Some(resolve::session(client, session).await?),
        None => None,
    };
    let params = ListCanvasesParams { session_id, include_closed: Some(arguments.all), limit: None };
    let page: ListCanvasesResponse = client.execute(&Command::CanvasList(params)).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.canvases)?;
    } else if page.canvases.is_empty() {
        console.remark("no open canvases");
    } else {
        let rows: Vec<_> = page.canvases.iter().map(row).collect();
        let lines = table::lines(["CANVAS", "VERSION", "CHANGED (UTC)", "STATE", "TITLE"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn row(canvas: &CanvasView) -> [String; 5] {
    [
        canvas.canvas_id.to_string(),
        canvas.version.to_string(),
        instant(canvas.updated_at),
        if canvas.closed_at.is_some() { "closed" } else { "shown" }.to_owned(),
        shortened(&canvas.title, 48),
    ]
}
