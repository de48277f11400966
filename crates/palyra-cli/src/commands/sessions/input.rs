//! `palyra sessions send|withdraw`: writing to a session, and taking back what waits in it.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{
    InputFate, SessionInputParams, SessionInputResponse, SessionQueueResponse, WithdrawInputParams,
};
use palyra_client::command::{About, Command};
use palyra_common::{ExitCode, InputMode};

use super::change::SessionArgument;
use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::{instant, shortened};
use crate::resolve;

/// Which session, and what to tell it.
#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    #[command(flatten)]
    session: SessionArgument,
    /// The message
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    /// What to do while a run is active: follow_up (a run of its own next), collect (one run for all), steer (into the run), interrupt
    #[arg(long, default_value = "follow_up")]
    mode: InputMode,
}

/// Which session, and which of what waits.
#[derive(Debug, Args)]
pub(crate) struct WithdrawArguments {
    #[command(flatten)]
    session: SessionArgument,
    /// The id of the message, from `palyra sessions queue`
    #[arg(value_name = "INPUT")]
    input: String,
}

pub(super) async fn send(arguments: SendArguments, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let text = arguments.text.join(" ");
    if text.trim().is_empty() {
        return Err(CliError::TaskEmpty);
    }
    let target = resolve::session(client, &arguments.session.session).await?;
    let workspace = std::env::current_dir().ok().map(|path| path.display().to_string());
    let params = SessionInputParams { text, mode: Some(arguments.mode), workspace };
    let fate: SessionInputResponse = client.execute(&Command::SessionInput(About { target, params })).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&fate)?;
        return Ok(ExitCode::Ok);
    }
    let run = fate.run.as_ref().map(|run| run.run_id.to_string()).unwrap_or_default();
    match fate.fate {
        InputFate::Started => console.line(&format!("started run {run}"))?,
        InputFate::Steered => console.line(&format!("sent to run {run}"))?,
        InputFate::Queued => {
            let (id, position) = (fate.input_id.unwrap_or_default(), fate.position.unwrap_or_default());
            console.line(&format!("queued at position {position}: {id}"))?;
        }
    }
    Ok(ExitCode::Ok)
}

pub(super) async fn withdraw(
    arguments: WithdrawArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let target = resolve::session(client, &arguments.session.session).await?;
    let about = About { target, params: WithdrawInputParams { input_id: arguments.input } };
    print(&client.execute(&Command::SessionInputWithdraw(about)).await?, context)
}

/// What waits.
pub(super) fn print(queue: &SessionQueueResponse, context: &Context) -> Result<ExitCode, CliError> {
    let console = &context.console;
    if !console.is_text() {
        console.list(queue, &queue.inputs)?;
    } else if queue.inputs.is_empty() {
        console.remark("no queued messages");
    } else {
        let rows: Vec<_> = queue
            .inputs
            .iter()
            .map(|input| {
                [input.input_id.clone(), instant(input.at), input.mode.to_string(), shortened(&input.text, 80)]
            })
            .collect();
        let lines = table::lines(["INPUT", "WHEN (UTC)", "MODE", "TEXT"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}
