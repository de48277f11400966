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
    /// Let anyone with the link submit forms and answer approvals on your behalf
    #[arg(long)]
    act: bool,
    /// Minutes until the link expires, at most a day
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
            CanvasAccess::Read => "read-only; use `--act` for one that can submit forms",
            CanvasAccess::Act => "and it can act on your behalf",
        };
        console.remark(&format!("valid until {} (UTC) for anyone who has it, {may}", instant(link.expires_at)));
    } else {
        console.document(&link)?;
    }
    Ok(ExitCode::Ok)
}
