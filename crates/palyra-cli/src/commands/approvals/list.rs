//! `palyra approvals list`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ApprovalState, ListApprovalsParams};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render::text::shortened;
use crate::{render, resolve};

/// Which approvals.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only those of this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Include answered ones
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
    let page = client.approvals(&ListApprovalsParams { run_id, state, ..Default::default() }).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.approvals)?;
    } else if page.approvals.is_empty() {
        let what = if arguments.all { "no approvals" } else { "no open approvals" };
        let of = arguments.run.as_ref().map(|run| format!(" for --run {}", shortened(run, 60))).unwrap_or_default();
        console.remark(&format!("{what}{of}"));
    } else {
        render::approvals::list(&page.approvals).iter().try_for_each(|line| console.line(line))?;
        console.remark("before you answer, see the whole call: palyra approvals show APPROVAL");
    }
    Ok(ExitCode::Ok)
}
