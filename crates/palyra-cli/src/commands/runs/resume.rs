//! `palyra runs resume RUN`.

use std::time::{Duration, Instant};

use clap::Args;
use palyra_budget::MicroUsd;
use palyra_client::Client;
use palyra_client::api::{ResumeRunParams, RunView};
use palyra_common::{ExitCode, RunLifecyclePhase, TerminationReason};

use super::{RunArgument, report};
use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

/// How long a run that was over its budget has to find out whether it still is.
const DECISION: Duration = Duration::from_secs(1);
/// How often it is looked at.
const INTERVAL: Duration = Duration::from_millis(50);

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
    let id = arguments.run.resolve(&client).await?;
    let was_over_budget = client.run(id).await?.run.reason == Some(TerminationReason::BudgetExceeded);
    let mut run = client.resume_run(id, &params).await?;
    if was_over_budget {
        run = settled(&client, run).await?;
    }
    let code = report(&run, context)?;
    if context.console.is_text() {
        let next = match run.phase {
            _ if run.phase.is_terminal() => {
                format!("to raise the limit for this run: palyra runs resume {} --over-budget AMOUNT", run.run_id)
            }
            RunLifecyclePhase::WaitingForApproval => "to answer it: palyra approvals watch".to_owned(),
            _ => format!("to follow it: palyra runs attach {}", run.run_id),
        };
        context.console.remark(&next);
    }
    Ok(code)
}

/// The run once it is known whether there is money for it: it asks for more, ends again, or makes its call.
async fn settled(client: &Client, mut run: RunView) -> Result<RunView, CliError> {
    let until = Instant::now() + DECISION;
    while run.phase == RunLifecyclePhase::Running && Instant::now() < until {
        tokio::time::sleep(INTERVAL).await;
        run = client.run(run.run_id).await?.run;
    }
    Ok(run)
}
