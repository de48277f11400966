//! `palyra policy prove`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use palyra_common::{ExitCode, env_vars};
use palyra_policy_prove::{CounterExample, DEFAULT_LIMIT, Proof, SolverProgram, Widening, prove};

use super::sets;
use crate::console::plain;
use crate::context::Context;
use crate::error::CliError;
use crate::numbers;

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct ProveArguments {
    /// BASE PROPOSED, or PROPOSED alone, which is then compared with the policies in force
    #[arg(value_name = "PROPOSAL", required = true, num_args = 1..=2)]
    proposals: Vec<PathBuf>,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_LIMIT.as_secs(), value_parser = numbers::between::<u64>(1, 86_400))]
    timeout: u64,
}

pub(super) fn execute(arguments: &ProveArguments, context: &Context) -> Result<ExitCode, CliError> {
    let (base, proposed) = match &arguments.proposals[..] {
        [base, proposed] => (sets::proposed(base, context)?, sets::proposed(proposed, context)?),
        [proposed] => (sets::in_force(context)?, sets::proposed(proposed, context)?),
        _ => return Err(CliError::Usage { reason: "expected one or two proposals".to_owned(), usage: None }),
    };
    let environment = &context.environment;
    let solver = SolverProgram::find(environment.get(env_vars::PALYRA_SMT_SOLVER), environment.get("PATH"))?;
    context.console.progress("comparing …");
    let proof = prove(&base, &proposed, &solver, Duration::from_secs(arguments.timeout))?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&proof)?;
    }
    match proof {
        Proof::Narrows { kinds, solved } => {
            if console.is_text() {
                console.line(&format!(
                    "OK: the proposal permits nothing new and drops no approval ({kinds} kinds of requests, {solved} by solver)"
                ))?;
            }
            Ok(ExitCode::Ok)
        }
        Proof::Widens(example) => {
            if console.is_text() {
                show(&example, context)?;
            }
            Ok(ExitCode::Precondition)
        }
    }
}

fn show(example: &CounterExample, context: &Context) -> Result<(), CliError> {
    let console = &context.console;
    let how = match example.widening {
        Widening::Permits => "permits what was denied",
        Widening::StopsAsking => "no longer requires approval",
    };
    console.line(&format!("NOT OK: for `{}` the proposal {how}, for example:", example.action))?;
    match &example.request {
        Some(request) => {
            let text =
                serde_json::to_string_pretty(request).map_err(|source| CliError::Output { source: source.into() })?;
            console.line(&plain(&text))?;
        }
        None => {
            console.line(&plain(&example.values))?;
            console.remark("note: these are the solver's values; no regular request with them was decided differently");
        }
    }
    for (whose, decision) in [("in force", &example.base), ("proposed", &example.proposed)] {
        if let Some(decision) = decision {
            console.line(&plain(&format!("{whose}: {} ({})", decision.verdict, decision.person.join("; "))))?;
        }
    }
    Ok(())
}
