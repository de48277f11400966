//! `palyra skills test`: the cases of a skill's folder, without a daemon and without a network.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use palyra_common::ExitCode;
use palyra_plugins_build::SkillCases;
use serde::Serialize;

use super::cases::CaseHost;
use super::local::LocalSkill;
use crate::context::Context;
use crate::error::CliError;

/// What to test.
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// Folder of the skill; it is built first
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
}

/// How one case went.
#[derive(Debug, Serialize)]
struct Tried {
    name: String,
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

/// How all of them went.
#[derive(Debug, Serialize)]
struct Report {
    passed: usize,
    failed: usize,
    cases: Vec<Tried>,
}

pub(super) async fn execute(given: &TestArguments, context: &Context) -> Result<ExitCode, CliError> {
    let skill = LocalSkill::open(&given.folder)?;
    let console = &context.console;
    let mut cases = Vec::new();
    for file in SkillCases::read_all(&given.folder)? {
        for case in &file.cases {
            let host = Arc::new(CaseHost::new(case, skill.manifest()));
            let outcome = skill.case(case, Arc::clone(&host)).await?;
            let told = outcome.as_ref().map(String::as_str).map_err(String::as_str);
            let verdict = host
                .complaint()
                .map_or_else(|| case.check(told, host.requests(), &host.stored()), Err)
                .and_then(|()| skill.keeps_to_schemas(case, told));
            let failure = verdict.err().map(|failure| failure.to_string());
            if console.is_text() {
                match &failure {
                    None => console.line(&format!("ok    {}", case.name))?,
                    Some(failure) => console.line(&format!("FAIL  {}: {failure}", case.name))?,
                }
            }
            cases.push(Tried { name: case.name.clone(), passed: failure.is_none(), failure });
        }
    }
    let passed = cases.iter().filter(|case| case.passed).count();
    let report = Report { passed, failed: cases.len() - passed, cases };
    if console.is_text() {
        console.line(&format!("{} passed, {} failed", report.passed, report.failed))?;
        if report.failed == 0 {
            super::next::show(console, super::next::after_tests(&given.folder));
        }
    } else {
        console.list(&report, &report.cases)?;
    }
    if report.cases.is_empty() {
        console.remark("no test cases found; add some in tests/*.json");
    }
    Ok(if report.failed == 0 { ExitCode::Ok } else { ExitCode::Precondition })
}
