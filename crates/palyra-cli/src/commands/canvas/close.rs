//! `palyra canvas close`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::CanvasView;
use palyra_client::command::{About, Command};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::resolve;

/// Which canvas.
#[derive(Debug, Args)]
pub(crate) struct CloseArguments {
    /// The canvas
    #[arg(value_name = "CANVAS")]
    canvas: String,
}

pub(super) async fn execute(
    arguments: &CloseArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let id = resolve::canvas(client, &arguments.canvas).await?;
    let canvas: CanvasView = client.execute(&Command::CanvasClose(About::only(id))).await?;
    if context.console.is_text() {
        context.console.line(&format!("Closed canvas {}", canvas.canvas_id))?;
    } else {
        context.console.document(&canvas)?;
    }
    Ok(ExitCode::Ok)
}
