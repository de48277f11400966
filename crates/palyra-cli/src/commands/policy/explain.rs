//! `palyra policy explain`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use palyra_common::ExitCode;
use palyra_policy::{Explanation, MAX_FILE_BYTES, Outcome, Request};

use super::request::CallArguments;
use super::{past, sets};
use crate::console::{Style, one_line};
use crate::context::Context;
use crate::error::CliError;

/// What to explain.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["request", "tool", "decision"]))]
pub(crate) struct ExplainArguments {
    /// A file with a request as JSON, or - for standard input
    #[arg(value_name = "FILE")]
    request: Option<PathBuf>,
    /// A past decision, as RUN/CALL; `last/` is the newest
    #[arg(long, value_name = "RUN/CALL")]
    decision: Option<String>,
    #[command(flatten)]
    call: CallArguments,
    /// Explain with this directory or file instead of the policies in force
    #[arg(long, value_name = "PROPOSAL")]
    policies: Option<PathBuf>,
}

pub(super) fn execute(arguments: &ExplainArguments, context: &Context) -> Result<ExitCode, CliError> {
    let set = sets::chosen(arguments.policies.as_deref(), context)?;
    let requests = match (&arguments.request, &arguments.call.tool, &arguments.decision) {
        (Some(file), ..) => vec![read(file, context)?],
        (_, Some(tool), _) => vec![arguments.call.request(tool)?],
        (_, _, Some(decision)) => past::named(decision, context)?.requests,
        _ => Vec::new(),
    };
    let explanations: Vec<Explanation> = requests.iter().map(|request| set.explain(request)).collect();
    let console = &context.console;
    if console.is_text() {
        for (request, explanation) in requests.iter().zip(&explanations) {
            show(request, explanation, context)?;
        }
    } else if let [only] = &explanations[..] {
        console.document(only)?;
    } else {
        console.list(&explanations, &explanations)?;
    }
    Ok(ExitCode::Ok)
}

fn read(file: &Path, context: &Context) -> Result<Request, CliError> {
    let unusable = |source| CliError::File { doing: "read", path: file.to_owned(), source };
    let mut text = String::new();
    let limit = MAX_FILE_BYTES + 1;
    if file == Path::new("-") {
        std::io::stdin().take(limit).read_to_string(&mut text).map_err(unusable)?;
    } else {
        let opened = std::fs::File::open(context.environment.absolute(file)).map_err(unusable)?;
        opened.take(limit).read_to_string(&mut text).map_err(unusable)?;
    }
    serde_json::from_str(&text)
        .map_err(|error| CliError::Usage { reason: format!("not a valid request: {error}"), usage: None })
}

fn show(request: &Request, explanation: &Explanation, context: &Context) -> Result<(), CliError> {
    let console = &context.console;
    let decision = &explanation.decision;
    console.line(&format!("{}: {}", request.action, decision.verdict))?;
    for reason in &decision.person {
        console.line(&format!("  {}", one_line(reason)))?;
    }
    for error in decision.errors.iter().chain(&explanation.refused) {
        console.line(&format!("  failed: {}", one_line(error)))?;
    }
    let mut others = 0;
    for policy in &explanation.policies {
        let outcome = match &policy.outcome {
            Outcome::Applies => "applies",
            Outcome::Fails(_) => "fails",
            Outcome::DoesNotApply => {
                others += 1;
                continue;
            }
        };
        let role = serde_json::to_value(policy.role).ok().and_then(|role| role.as_str().map(str::to_owned));
        let line = format!("  {outcome}: {} ({}) at {}", policy.id, role.unwrap_or_default(), policy.at);
        console.line(&one_line(&line))?;
    }
    let rest = format!("  {others} more policies for `{}` do not apply", request.action);
    console.line(&console.styled(Style::Dim, &rest))
}
