//! `palyra runs resume RUN`.

use clap::Args;
use palyra_budget::MicroUsd;
use palyra_client::Client;
use palyra_client::api::ResumeRunParams;
use palyra_common::{ExitCode, RunLifecyclePhase};

use super::{RunArgument, report};
use crate::context::Context;
use crate::error::CliError;

/// Which run, and how far it may go.
#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    #[command(flatten)]
    run: RunArgument,
    /// Let a run that stopped at a budget spend this much more, such as 2 or $0.50; you are asked to approve it
    #[arg(long, value_name = "AMOUNT")]
    over_budget: Option<MicroUsd>,
}

pub(super) async fn execute(
    arguments: ResumeArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let params = ResumeRunParams { over_budget: arguments.over_budget };
    let run = client.resume_run(arguments.run.resolve(client).await?, &params).await?;
    let code = report(&run, context)?;
    if context.console.is_text() {
        let next = match run.phase {
            RunLifecyclePhase::WaitingForApproval => "answer with: palyra approvals watch",
            _ => "see how it goes on with: palyra runs tape last --follow",
        };
        context.console.remark(next);
    }
    Ok(code)
}
