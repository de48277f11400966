//! `palyra devices revoke DEVICE`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::DeviceView;
use palyra_client::command::{About, Command};
use palyra_common::{DeviceId, ExitCode};

use crate::context::Context;
use crate::error::CliError;

/// Which device.
#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    /// Its id, as `palyra devices list` shows it
    #[arg(value_name = "DEVICE")]
    device: DeviceId,
}

pub(super) async fn execute(
    arguments: &RevokeArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let device: DeviceView = client.execute(&Command::DeviceRevoke(About::only(arguments.device))).await?;
    if context.console.is_text() {
        context.console.line(&format!("Revoked device {}", device.device_id))?;
    } else {
        context.console.document(&device)?;
    }
    Ok(ExitCode::Ok)
}
