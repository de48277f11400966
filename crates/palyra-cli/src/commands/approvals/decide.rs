//! `palyra approvals decide APPROVAL allow|deny`.

use clap::{Args, ValueEnum};
use palyra_client::Client;
use palyra_client::api::DecideApprovalParams;
use palyra_common::{ApprovalDecision, ApprovalScope, ExitCode, RunLifecyclePhase};

use super::{answer, which};
use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::{render, resolve};

const EXAMPLES: &str = "\
What an answer covers:
  once       exactly this call, with exactly these arguments
  session    also later calls of this session that the offered pattern covers
  timeboxed  the same in all your sessions, until the time is up (an hour, or --minutes)
`palyra approvals show APPROVAL` shows the pattern; where none is offered, only `once` is possible.
`palyra approvals patterns` lists what is allowed, `palyra approvals revoke` revokes it.

Examples:
  palyra approvals decide 4P5Q allow
  palyra approvals decide 4P5Q allow --scope session
  palyra approvals decide 4P5Q allow --scope timeboxed --minutes 20
  palyra approvals decide 4P5Q deny
  palyra approvals decide 4P5Q deny --reason \"write to the staging copy instead\"";

/// Which question, and the answer.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DecideArguments {
    /// The approval's id, its beginning or its end
    #[arg(value_name = "APPROVAL")]
    approval: String,
    /// The answer: allow or deny
    #[arg(hide_possible_values = true)]
    decision: Answer,
    /// What an `allow` covers: once, session or timeboxed
    #[arg(long, value_name = "SCOPE", default_value = "once")]
    scope: ApprovalScope,
    /// How long a timeboxed answer holds, up to a day [default: 60]
    #[arg(long, value_name = "MINUTES", value_parser = numbers::between::<u32>(1, 1440))]
    minutes: Option<u32>,
    /// Why it is denied; the model is told
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Answer {
    /// Go ahead
    Allow,
    /// Do not
    Deny,
}

pub(super) async fn execute(
    arguments: &DecideArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let params = params(arguments)?;
    let id = match resolve::approval(client, &arguments.approval).await {
        // The daemon then says what closed it.
        Err(CliError::NoMatch { .. }) => which::approval(client, &arguments.approval).await?,
        open => open?,
    };
    let decided = answer::give(client, id, &params).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&decided)?;
        return Ok(ExitCode::Ok);
    }
    let answer = match (params.decision, params.scope) {
        (ApprovalDecision::Allow, ApprovalScope::Once) => "allowed".to_owned(),
        (ApprovalDecision::Allow, scope) => format!("allowed ({scope})"),
        _ => "denied".to_owned(),
    };
    match &decided.run {
        Some(run) if run.phase.is_terminal() => {
            console.line(&format!("{answer}; run {} has ended: {}", run.run_id, render::runs::outcome(run)))?;
        }
        Some(run) => {
            let how = match run.phase {
                RunLifecyclePhase::Running | RunLifecyclePhase::Queued => "continues".to_owned(),
                other => format!("is {}", other.as_str().replace('_', " ")),
            };
            console.line(&format!("{answer}; run {} {how}", run.run_id))?;
            console.remark(&format!("to follow it: palyra runs attach {}", run.run_id));
        }
        None => console.line(&format!("{answer}; the client that asked has been told"))?,
    }
    match &decided.pattern {
        Some(pattern) => {
            render::approvals::agreed_to(pattern).iter().try_for_each(|line| console.line(line))?;
        }
        None if answer::reaches_further(&params) => {
            console.remark("cannot read back what was allowed; see `palyra approvals patterns`");
        }
        None => {}
    }
    Ok(ExitCode::Ok)
}

/// The answer as the daemon takes it. What would be ignored is refused, so that nobody believes in it.
fn params(arguments: &DecideArguments) -> Result<DecideApprovalParams, CliError> {
    let refuse = |reason: &str| Err(CliError::Usage { reason: reason.to_owned(), usage: None });
    let decision = match arguments.decision {
        Answer::Allow => ApprovalDecision::Allow,
        Answer::Deny => ApprovalDecision::Deny,
    };
    let (scope, minutes) = (arguments.scope, arguments.minutes);
    if decision == ApprovalDecision::Deny && scope != ApprovalScope::Once {
        return refuse("`--scope` goes with `allow`; `deny` covers this one call");
    }
    if minutes.is_some() && scope != ApprovalScope::Timeboxed {
        return refuse("`--minutes` goes with `--scope timeboxed`");
    }
    if arguments.reason.is_some() && decision == ApprovalDecision::Allow {
        return refuse("`--reason` goes with `deny`");
    }
    Ok(DecideApprovalParams { decision, scope, minutes, reason: arguments.reason.clone() })
}
