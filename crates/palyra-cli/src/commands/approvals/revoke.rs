//! `palyra approvals revoke APPROVAL`: takes back what was agreed to for longer than once.

use clap::Args;
use palyra_client::Client;
use palyra_common::ExitCode;

use super::{patterns, which};
use crate::context::Context;
use crate::error::CliError;

/// Which pattern.
#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    /// The id of the approval that allowed it, its beginning or its end
    #[arg(value_name = "APPROVAL")]
    approval: String,
}

pub(super) async fn execute(
    arguments: &RevokeArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let id = which::pattern(client, &arguments.approval).await?;
    let left = client.revoke_pattern(id).await?;
    if context.console.is_text() {
        context.console.remark(&format!("revoked {id}; calls like it are asked about again. Still allowed:"));
    }
    patterns::print(&left, context)?;
    Ok(ExitCode::Ok)
}
