//! `palyra devices …`.

mod list;
mod revoke;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
A device presents its certificate instead of a token, over QUIC and TLS. Revoking a lost device closes its connections at once.

Examples:
  palyra devices list
  palyra devices revoke 01JC0Q6F7Z8G9H0J1K2M3N4P5Q";

/// What to do with devices.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum DevicesCommand {
    /// List devices that have a certificate, newest first
    List,
    /// Revoke the certificates of a device
    Revoke(revoke::RevokeArguments),
}

pub(super) async fn execute(command: DevicesCommand, context: &Context) -> Result<ExitCode, CliError> {
    let client = launcher::connect(context).await?;
    match command {
        DevicesCommand::List => list::execute(&client, context).await,
        DevicesCommand::Revoke(arguments) => revoke::execute(&arguments, &client, context).await,
    }
}
