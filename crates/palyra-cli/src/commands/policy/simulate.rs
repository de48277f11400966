//! `palyra policy simulate`.

use std::path::PathBuf;

use clap::Args;
use palyra_common::ExitCode;
use palyra_policy::{ChangedDecision, simulate};
use serde::Serialize;

use super::past::{Found, Past};
use super::sets;
use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;

/// What to try.
#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    /// The directory or file to decide with
    #[arg(value_name = "PROPOSAL")]
    proposal: PathBuf,
}

/// What came out.
#[derive(Debug, Serialize)]
struct Outcome {
    /// Decisions that were made again.
    considered: u64,
    /// Decisions whose question is not on the journal, or not in a form that is read.
    unreadable: u64,
    /// Those that would be different.
    changed: Vec<ChangedDecision>,
}

pub(super) fn execute(arguments: &SimulateArguments, context: &Context) -> Result<ExitCode, CliError> {
    let proposed = sets::proposed(&arguments.proposal, context)?;
    let mut past = Past::open(context)?;
    let mut outcome = Outcome { considered: 0, unreadable: 0, changed: Vec::new() };
    while let Some(found) = past.next()? {
        match found {
            Found::Unreadable => outcome.unreadable += 1,
            Found::Decision(decision) => {
                let simulation = simulate([decision], &proposed);
                outcome.considered += simulation.considered;
                outcome.changed.extend(simulation.changed);
            }
        }
    }
    let console = &context.console;
    if console.is_text() {
        for changed in &outcome.changed {
            let note = if changed.widens() { " (more permissive)" } else { "" };
            let why = changed.now.person.join("; ");
            let line = format!("{}: {} → {}{note}: {why}", changed.reference, changed.was, changed.now.verdict);
            console.line(&one_line(&line))?;
        }
        let (changed, considered) = (outcome.changed.len(), outcome.considered);
        console.line(&format!("{changed} of {considered} past decisions would be different"))?;
        if outcome.unreadable > 0 {
            console.remark(&format!("note: skipped {} decisions that do not record their request", outcome.unreadable));
        }
    } else {
        console.list(&outcome, &outcome.changed)?;
    }
    Ok(ExitCode::Ok)
}
