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
An agent may show a page: tables, charts, a form to fill in, the questions that wait for you. `open`
makes a link for a browser. Whoever has the link needs nothing else, so it is good for one page and
for a while only. It ends with the page, and with the credential that it was made with.

CANVAS is an id, its beginning or its end, or `last`.

Examples:
  palyra canvas list
  palyra canvas show last              as text, here
  palyra canvas open last              a link for looking
  palyra canvas open last --act        a link for filling in forms and answering questions
  palyra canvas close last";

/// What to do with canvases.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum CanvasCommand {
    /// List canvases that are shown, newest first
    List(list::ListArguments),
    /// Show a canvas as text
    Show(show::ShowArguments),
    /// Make a link under which a browser shows a canvas
    Open(open::OpenArguments),
    /// Close a canvas and end its links
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
