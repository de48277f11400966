//! `palyra canvas show`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::CanvasDetail;
use palyra_client::command::{About, Command};
use palyra_common::{ExitCode, Integrity};

use crate::context::Context;
use crate::error::CliError;
use crate::render::text::{instant, shortened};
use crate::resolve;

/// Longest title that is shown on its line.
const MAX_TITLE: usize = 200;

/// Which canvas.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The canvas
    #[arg(value_name = "CANVAS")]
    canvas: String,
}

pub(super) async fn execute(
    arguments: &ShowArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let id = resolve::canvas(client, &arguments.canvas).await?;
    let detail: CanvasDetail = client.execute(&Command::CanvasGet(About::only(id))).await?;
    if !context.console.is_text() {
        context.console.document(&detail)?;
        return Ok(ExitCode::Ok);
    }
    // The same check that the daemon made: a terminal is as easily misled as a browser.
    let document = palyra_a2ui::Document::parse(&detail.document)?;
    context.console.line(&shortened(&detail.canvas.title, MAX_TITLE))?;
    context.console.line("")?;
    for line in palyra_a2ui::text::render(&document).lines() {
        context.console.line(line)?;
    }
    if detail.canvas.label.integrity == Integrity::Untrusted {
        context.console.remark("the agent had read untrusted content, which may have influenced this page");
    }
    if let Some(at) = detail.canvas.closed_at {
        context.console.remark(&format!("closed {} (UTC)", instant(at)));
    }
    Ok(ExitCode::Ok)
}
