//! `palyra auxiliary list`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{AuxiliaryTaskView, ListAuxiliaryParams, ListAuxiliaryResponse};
use palyra_client::command::Command;
use palyra_common::{AuxiliaryTaskId, AuxiliaryTaskState, ExitCode};

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::next_page::NextPage;
use crate::render::table;
use crate::render::text::{instant, shortened};
use crate::resolve;

/// Which tasks.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Maximum number of tasks
    #[arg(long, value_name = "COUNT", value_parser = numbers::at_least::<u32>(1))]
    limit: Option<u32>,
    /// pending, running, succeeded, failed or cancelled
    #[arg(long)]
    state: Option<AuxiliaryTaskState>,
    /// Of this session only: an id, its beginning or its end, a key, or `last`
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Of this run only: an id, its beginning or its end, or `last`
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Only tasks older than this one
    #[arg(long, value_name = "TASK")]
    before: Option<AuxiliaryTaskId>,
}

pub(super) async fn execute(
    arguments: &ListArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let session_id = match &arguments.session {
        Some(session) => Some(resolve::session(client, session).await?),
        None => None,
    };
    let run_id = match &arguments.run {
        Some(run) => Some(resolve::run(client, run).await?),
        None => None,
    };
    let ListArguments { state, limit, before, .. } = *arguments;
    let params = ListAuxiliaryParams { session_id, run_id, state, limit, before };
    let page: ListAuxiliaryResponse = client.execute(&Command::AuxiliaryList(params)).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.tasks)?;
    } else if page.tasks.is_empty() {
        let filtered = arguments.state.is_some()
            || arguments.before.is_some()
            || arguments.session.is_some()
            || arguments.run.is_some();
        console.remark(if filtered { "no auxiliary tasks match" } else { "no auxiliary tasks yet" });
    } else {
        let rows: Vec<_> = page.tasks.iter().map(row).collect();
        let lines = table::lines(["TASK", "KIND", "STATE", "CREATED (UTC)", "CALLS", "TOKENS", "COST", "ABOUT"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
        if let Some(before) = page.next_before {
            let next = NextPage::of("palyra auxiliary list")
                .option("--state", state)
                .option("--session", session_id)
                .option("--run", run_id)
                .option("--limit", limit)
                .option("--before", Some(before));
            console.remark(&next.line());
        }
    }
    Ok(ExitCode::Ok)
}

fn row(task: &AuxiliaryTaskView) -> [String; 8] {
    let about = match (&task.error, &task.output) {
        (Some(error), _) => format!("{}: {}", error.code, error.message),
        (None, Some(output)) => output.to_string(),
        (None, None) => task.run_id.map_or_else(String::new, |run| format!("of run {run}")),
    };
    [
        task.task_id.to_string(),
        task.kind.to_string(),
        task.state.to_string(),
        instant(task.created_at),
        task.calls.to_string(),
        (task.input_tokens + task.output_tokens).to_string(),
        task.micro_usd.to_string(),
        shortened(&about, 60),
    ]
}
