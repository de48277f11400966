//! `palyra approvals decide ID allow|deny`.

use clap::{Args, ValueEnum};
use palyra_client::Client;
use palyra_client::api::DecideApprovalParams;
use palyra_common::{ApprovalDecision, ApprovalScope, ExitCode};

use crate::context::Context;
use crate::error::CliError;
use crate::{render, resolve};

/// Which question, and the answer.
#[derive(Debug, Args)]
pub(crate) struct DecideArguments {
    /// The approval's id, its beginning or its end
    #[arg(value_name = "APPROVAL")]
    approval: String,
    /// The answer, for this one call
    decision: Answer,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Answer {
    /// Go ahead, this once
    Allow,
    /// Do not
    Deny,
}

pub(super) async fn execute(
    arguments: &DecideArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let id = resolve::approval(client, &arguments.approval).await?;
    let decision = match arguments.decision {
        Answer::Allow => ApprovalDecision::Allow,
        Answer::Deny => ApprovalDecision::Deny,
    };
    let run = client.decide_approval(id, &DecideApprovalParams { decision, scope: ApprovalScope::Once }).await?;
    if context.console.is_text() {
        let outcome = render::runs::outcome(&run);
        context.console.line(&format!("{decision}; run {} is now {outcome}", run.run_id))?;
    } else {
        context.console.document(&run)?;
    }
    Ok(ExitCode::Ok)
}
