//! `palyra skills call`: a tool of an installed skill, outside any run.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{CallSkillParams, CallSkillResponse};
use palyra_client::command::{About, Command, SkillName};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;

/// Which tool, with what.
#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// The tool, as SKILL.TOOL
    #[arg(value_name = "SKILL.TOOL")]
    tool: String,
    /// Its input, as JSON
    #[arg(default_value = "{}")]
    input: String,
}

pub(super) async fn execute(client: &Client, given: CallArguments, context: &Context) -> Result<ExitCode, CliError> {
    let usage = || Some("palyra skills call SKILL.TOOL '{\"key\": \"value\"}'".to_owned());
    let (skill, tool) = given.tool.rsplit_once('.').ok_or_else(|| CliError::Usage {
        reason: format!("`{}` is not of the form SKILL.TOOL", given.tool),
        usage: usage(),
    })?;
    let input = serde_json::from_str(&given.input)
        .map_err(|error| CliError::Usage { reason: format!("the input is not valid JSON: {error}"), usage: usage() })?;
    let params = CallSkillParams { tool: tool.to_owned(), input, module: None };
    let about = About { target: SkillName(skill.to_owned()), params };
    show(&client.execute(&Command::SkillCall(about)).await?, context)
}

/// What a call gave.
pub(super) fn show(answer: &CallSkillResponse, context: &Context) -> Result<ExitCode, CliError> {
    let console = &context.console;
    if console.is_text() {
        console.line(&serde_json::to_string_pretty(&answer.output).unwrap_or_default())?;
        console.remark(&format!("{} fuel, {} KiB, {} µs", answer.fuel, answer.memory_bytes / 1024, answer.micros));
    } else {
        console.document(answer)?;
    }
    Ok(ExitCode::Ok)
}
