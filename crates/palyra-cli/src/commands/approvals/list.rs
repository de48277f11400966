//! `palyra approvals list`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ApprovalState, ListApprovalsParams};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::{render, resolve};

/// Which approvals.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only those of one run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Also those that were answered
    #[arg(long)]
    all: bool,
}

pub(super) async fn execute(
    arguments: &ListArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let run_id = match &arguments.run {
        Some(run) => Some(resolve::run(client, run).await?),
        None => None,
    };
    let state = Some(if arguments.all { ApprovalState::All } else { ApprovalState::Pending });
    let page = client.approvals(&ListApprovalsParams { run_id, state }).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.approvals)?;
    } else if page.approvals.is_empty() {
        console.remark(if arguments.all { "nothing was ever asked" } else { "nothing waits for you" });
    } else {
        render::approvals::list(&page.approvals).iter().try_for_each(|line| console.line(line))?;
        console.remark("before you answer, see all of it: palyra approvals show APPROVAL");
    }
    Ok(ExitCode::Ok)
}
