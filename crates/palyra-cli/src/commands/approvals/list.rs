//! `palyra approvals list`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ApprovalState, ApprovalView, ListApprovalsParams};
use palyra_common::ExitCode;

use crate::console::plain;
use crate::context::Context;
use crate::error::CliError;
use crate::render::text::{instant, shortened};
use crate::resolve;

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
        console.remark("nothing waits for you");
    }
    if console.is_text() {
        page.approvals.iter().flat_map(lines).try_for_each(|line| console.line(&line))?;
    }
    Ok(ExitCode::Ok)
}

/// A question with everything a person needs to answer it: arguments are never shortened here.
fn lines(approval: &ApprovalView) -> Vec<String> {
    let mut lines = vec![
        format!("{}  {} risk  {}", approval.approval_id, approval.risk, shortened(&approval.summary, 300)),
        format!("  run {}, asked {} UTC", approval.run_id, instant(approval.requested_at)),
        format!("  why: {}", shortened(&approval.reason, 300)),
    ];
    if let (Some(tool), Some(arguments)) = (&approval.tool, &approval.arguments) {
        let pretty = serde_json::to_string_pretty(arguments).unwrap_or_else(|_| arguments.to_string());
        lines.push(format!("  {} with", shortened(tool, 100)));
        lines.extend(plain(&pretty).lines().map(|line| format!("    {line}")));
    }
    match &approval.answer {
        Some(answer) => lines.push(format!("  answered {} by {}", answer.decision, shortened(&answer.by, 60))),
        None => lines.push(format!("  palyra approvals decide {} allow|deny", approval.approval_id)),
    }
    lines
}
