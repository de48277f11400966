//! `palyra runs resume RUN`.

use clap::Args;
use palyra_budget::MicroUsd;
use palyra_client::api::ResumeRunParams;
use palyra_common::{ExitCode, RunLifecyclePhase};

use super::{RunArgument, report};
use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

/// Which run, and how far it may go.
#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    #[command(flatten)]
    run: RunArgument,
    /// Let a run that reached a budget spend this much more, such as 2 or $0.50; you are asked to approve it
    #[arg(long, value_name = "AMOUNT")]
    over_budget: Option<MicroUsd>,
    /// Continue with another model
    #[arg(short, long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    model: Option<String>,
}

pub(super) async fn execute(arguments: ResumeArguments, context: &Context) -> Result<ExitCode, CliError> {
    // A key or an address that was fixed in a variable reaches a daemon only when it starts.
    let (client, ..) = launcher::ensure(context).await?;
    let params = ResumeRunParams { over_budget: arguments.over_budget, model: arguments.model };
    let run = client.resume_run(arguments.run.resolve(&client).await?, &params).await?;
    let code = report(&run, context)?;
    if context.console.is_text() {
        let next = match run.phase {
            RunLifecyclePhase::WaitingForApproval => "to answer it: palyra approvals watch".to_owned(),
            _ => format!("to follow it: palyra runs attach {}", run.run_id),
        };
        context.console.remark(&next);
    }
    Ok(code)
}
