//! `palyra canvas open`: prints a link. It does not start a browser, because the link may be meant for another machine.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{CanvasAccess, CanvasLinkResponse, LinkCanvasParams};
use palyra_client::command::{About, Command};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::text::instant;
use crate::resolve;

/// Which canvas, and for what.
#[derive(Debug, Args)]
pub(crate) struct OpenArguments {
    /// The canvas
    #[arg(value_name = "CANVAS")]
    canvas: String,
    /// Let whoever has the link fill in forms and answer questions in your name
    #[arg(long)]
    act: bool,
    /// How many minutes the link is good, at most a day
    #[arg(long, value_name = "MINUTES", default_value_t = 60, value_parser = numbers::between::<u64>(1, 1440))]
    minutes: u64,
}

pub(super) async fn execute(
    arguments: &OpenArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let target = resolve::canvas(client, &arguments.canvas).await?;
    let access = if arguments.act { CanvasAccess::Act } else { CanvasAccess::Read };
    let params = LinkCanvasParams { access: Some(access), expires_in_seconds: Some(arguments.minutes * 60) };
    let link: CanvasLinkResponse = client.execute(&Command::CanvasLink(About { target, params })).await?;
    let console = &context.console;
    if console.is_text() {
        console.line(&link.url)?;
        let may = match link.access {
            CanvasAccess::Read => "to look at; `--act` makes one that takes answers",
            CanvasAccess::Act => "to act in your name",
        };
        console.remark(&format!("good until {} (UTC) for whoever has it, {may}", instant(link.expires_at)));
    } else {
        console.document(&link)?;
    }
    Ok(ExitCode::Ok)
}
