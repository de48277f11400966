//! `palyra auxiliary run`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{AuxiliaryTaskView, RunAuxiliaryParams};
use palyra_client::command::Command;
use palyra_common::{AuxiliaryTaskKind, ExitCode};
use serde_json::Value;

use crate::context::Context;
use crate::error::CliError;
use crate::resolve;

/// Largest input: what the daemon takes.
const MAX_INPUT_BYTES: u64 = 8 << 20;

/// A task.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// summary, recall_search, classification, extraction, objective_judge or vision
    #[arg(value_name = "KIND")]
    kind: AuxiliaryTaskKind,
    /// File with the input as JSON; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// The session it belongs to: an id, its beginning or its end, a key, or `last`
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Model to use instead of the default for the kind
    #[arg(long)]
    model: Option<String>,
}

pub(super) async fn execute(arguments: RunArguments, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let input = read(&arguments.input, context)?;
    let session_id = match &arguments.session {
        Some(session) => Some(resolve::session(client, session).await?),
        None => None,
    };
    let params = RunAuxiliaryParams { kind: arguments.kind, input, session_id, model: arguments.model };
    let task: AuxiliaryTaskView = client.execute(&Command::AuxiliaryRun(params)).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&task)?;
        return Ok(ExitCode::Ok);
    }
    let by = task.answered_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    console.remark(&format!(
        "task {}{by}: {} + {} tokens, {}; the output is {}",
        task.task_id, task.input_tokens, task.output_tokens, task.micro_usd, task.label.integrity
    ));
    // The document itself, so that it can be piped on.
    console.line(&task.output.unwrap_or_default().to_string())?;
    Ok(ExitCode::Ok)
}

fn read(file: &Path, context: &Context) -> Result<Value, CliError> {
    let unusable = |source| CliError::File { doing: "read", path: file.to_owned(), source };
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().take(MAX_INPUT_BYTES + 1).read_to_string(&mut text).map_err(unusable)?;
    } else {
        let opened = std::fs::File::open(context.environment.absolute(file)).map_err(unusable)?;
        opened.take(MAX_INPUT_BYTES + 1).read_to_string(&mut text).map_err(unusable)?;
    }
    let wrong = |reason: String| CliError::Usage { reason, usage: None };
    if text.len() as u64 > MAX_INPUT_BYTES {
        return Err(wrong(format!("the input is larger than {} MiB", MAX_INPUT_BYTES >> 20)));
    }
    serde_json::from_str(&text).map_err(|error| wrong(format!("the input is not valid JSON: {error}")))
}
