//! `palyra sessions export|explain|queue`: what a session holds and how it came to be.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{
    ExplainSessionResponse, ExportFormat, ExportSessionParams, ExportSessionResponse, SessionQueueResponse,
};
use palyra_client::command::{About, Command};
use palyra_common::ExitCode;

use super::change::SessionArgument;
use crate::console::plain;
use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::{instant, shortened};
use crate::resolve;

/// Which session, and how to write it down.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    session: SessionArgument,
    /// markdown or json
    #[arg(long, default_value = "markdown")]
    format: ExportFormat,
}

pub(super) async fn export(
    arguments: &ExportArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let target = resolve::session(client, &arguments.session.session).await?;
    let about = About { target, params: ExportSessionParams { format: Some(arguments.format) } };
    let export: ExportSessionResponse = client.execute(&Command::SessionExport(about)).await?;
    match (export.markdown, export.document) {
        (Some(markdown), _) if context.console.is_text() => context.console.piece(&plain(&markdown))?,
        (Some(markdown), _) => context.console.document(&markdown)?,
        (None, document) => context.console.document(&document)?,
    }
    Ok(ExitCode::Ok)
}

pub(super) async fn explain(
    arguments: &SessionArgument,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let about = About::only(resolve::session(client, &arguments.session).await?);
    let account: ExplainSessionResponse = client.execute(&Command::SessionExplain(about)).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&account, &account.steps)?;
        return Ok(ExitCode::Ok);
    }
    let rows: Vec<_> = account
        .steps
        .iter()
        .map(|step| {
            [
                instant(step.at),
                step.event.replace('_', " "),
                step.by.clone().unwrap_or_else(|| "–".to_owned()),
                shortened(&step.details.to_string(), 90),
            ]
        })
        .collect();
    let lines = table::lines(["WHEN (UTC)", "WHAT", "BY", "DETAILS"], &rows);
    lines.iter().try_for_each(|line| console.line(line))?;
    Ok(ExitCode::Ok)
}

pub(super) async fn queue(
    arguments: &SessionArgument,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let about = About::only(resolve::session(client, &arguments.session).await?);
    let queue: SessionQueueResponse = client.execute(&Command::SessionQueue(about)).await?;
    super::input::print(&queue, context)
}
