//! `palyra policy test`.

use std::path::PathBuf;

use clap::Args;
use palyra_common::ExitCode;
use palyra_policy::{TestReport, run_test_file, run_tests};

use super::sets;
use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;

/// Which cases.
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// Test files [default: the shipped ones and those next to the policies]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Test this directory or file instead of the policies in force
    #[arg(long, value_name = "PROPOSAL")]
    policies: Option<PathBuf>,
}

pub(super) fn execute(arguments: &TestArguments, context: &Context) -> Result<ExitCode, CliError> {
    let set = sets::chosen(arguments.policies.as_deref(), context)?;
    let mut report = TestReport::default();
    if arguments.files.is_empty() {
        report = run_tests(&set)?;
    }
    for file in &arguments.files {
        let more = run_test_file(&set, &context.environment.absolute(file))?;
        report.cases += more.cases;
        report.failures.extend(more.failures);
    }
    let console = &context.console;
    if console.is_text() {
        for failure in &report.failures {
            console.line(&one_line(&format!("{}: {}: {}", failure.at, failure.case, failure.difference)))?;
        }
        console.line(&format!("{} tests, {} failed", report.cases, report.failures.len()))?;
    } else {
        console.document(&report)?;
    }
    Ok(if report.passed() { ExitCode::Ok } else { ExitCode::Precondition })
}
