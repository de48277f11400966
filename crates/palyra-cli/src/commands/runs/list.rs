//! `palyra runs list`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::ListRunsParams;
use palyra_common::{ExitCode, RunLifecyclePhase};

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;
use crate::render::next_page::NextPage;
use crate::render::text::shortened;
use crate::{render, resolve};

/// How many are listed where nothing is said.
const DEFAULT_LIMIT: u32 = 20;

/// Which runs.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only runs of this session (id, key or `last`)
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only runs in this phase, such as running or completed
    #[arg(long)]
    phase: Option<RunLifecyclePhase>,
    /// How many to list
    #[arg(short = 'n', long, default_value_t = DEFAULT_LIMIT, value_name = "COUNT", value_parser = numbers::at_least::<u32>(1))]
    limit: u32,
    /// Only runs older than this one
    #[arg(long, value_name = "RUN")]
    before: Option<String>,
}

pub(super) async fn execute(
    arguments: ListArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let session_id = match &arguments.session {
        Some(session) => Some(resolve::session(client, session).await?),
        None => None,
    };
    let before = match &arguments.before {
        Some(run) => Some(resolve::run(client, run).await?),
        None => None,
    };
    let params = ListRunsParams { session_id, phase: arguments.phase, limit: Some(arguments.limit), before };
    let page = client.runs(&params).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.runs)?;
    } else if page.runs.is_empty() {
        console.remark(&match filters(&arguments) {
            None => "no runs yet; start one with: palyra run \"list the files\"".to_owned(),
            Some(filters) => format!("no runs match {filters}"),
        });
    } else {
        render::runs::list(&page.runs).iter().try_for_each(|line| console.line(line))?;
        if let Some(before) = page.next_before {
            let next = NextPage::of("palyra runs list")
                .option("--session", session_id)
                .option("--phase", arguments.phase)
                .option("--limit", (arguments.limit != DEFAULT_LIMIT).then_some(arguments.limit))
                .option("--before", Some(before));
            console.remark(&next.line());
        }
    }
    Ok(ExitCode::Ok)
}

/// What was asked for beside everything, as it was typed.
fn filters(arguments: &ListArguments) -> Option<String> {
    let named = [
        arguments.session.as_ref().map(|session| format!("--session {}", shortened(session, 60))),
        arguments.phase.map(|phase| format!("--phase {phase}")),
        arguments.before.as_ref().map(|before| format!("--before {}", shortened(before, 60))),
    ];
    let named: Vec<String> = named.into_iter().flatten().collect();
    (!named.is_empty()).then(|| named.join(" "))
}
