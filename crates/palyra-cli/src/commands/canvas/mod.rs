//! `palyra canvas …`: pages that agents drew.

mod close;
mod list;
mod open;
mod show;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
An agent can show a page, called a canvas: tables, charts, forms, pending approvals. `open`
creates a link for a browser. Anyone with the link can open the page without logging in, so a link
is valid for one page and a limited time, and ends with the page or the credential that created it.

CANVAS is an id, its beginning or its end, or `last`.

Examples:
  palyra canvas list
  palyra canvas show last              as text, here
  palyra canvas open last              a read-only link
  palyra canvas open last --act        a link that can submit forms and answer approvals
  palyra canvas close last";

/// What to do with canvases.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum CanvasCommand {
    /// List open canvases, newest first
    List(list::ListArguments),
    /// Show a canvas as text
    Show(show::ShowArguments),
    /// Create a link that shows a canvas in a browser
    Open(open::OpenArguments),
    /// Close a canvas and revoke its links
    Close(close::CloseArguments),
}

pub(super) async fn execute(command: CanvasCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = launcher::connect(context).await?;
    match command {
        CanvasCommand::List(arguments) => list::execute(&arguments, &client, context).await,
        CanvasCommand::Show(arguments) => show::execute(&arguments, &client, context).await,
        CanvasCommand::Open(arguments) => open::execute(&arguments, &client, context).await,
        CanvasCommand::Close(arguments) => close::execute(&arguments, &client, context).await,
    }
}
