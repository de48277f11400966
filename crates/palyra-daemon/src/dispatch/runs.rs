//! Commands about runs.

use std::path::Path as FilePath;

use palyra_agent::{
    ClientResult, ClientTool, GivenExchange, NewRun, Objective, Resumption, RunFilter, RunRow, UndoOptions,
    WorkspaceAuthority,
};
use palyra_client::api::{
    AbortRunParams, CreateRunParams, DeliverResultsParams, EditEnvelopeParams, ListRunsParams, ListRunsResponse,
    ReplayReport, ResumeRunParams, RunDetail, RunInputParams, RunView, UndoResponse, UndoRunParams,
};
use palyra_client::command::About;
use palyra_common::{AcpCommand, ErrorCategory, RunId, StableErrorEnvelope};

use super::caller::Caller;
use super::idempotency::check_key;
use super::refusal::{Refusal, Result};
use super::{attachments, authorise, bindings, workspaces};
use crate::app::App;
use crate::views;

/// Entries of a page when nobody says how many.
const DEFAULT_PAGE: u32 = 50;
/// Most entries of a page.
pub(super) const MAX_PAGE: u32 = 500;
/// Tools of its own that a caller may bring.
const MAX_CLIENT_TOOLS: usize = 128;

/// Accepts a run. The key may come with the parameters or with the envelope around them.
pub(super) async fn create(
    app: &App,
    caller: &Caller,
    mut params: CreateRunParams,
    key: Option<String>,
) -> Result<RunView> {
    match (&params.idempotency_key, key) {
        (Some(inner), Some(outer)) if *inner != outer => {
            return Err(Refusal::field("idempotency_key", "the envelope and the parameters name different keys"));
        }
        (None, Some(outer)) => params.idempotency_key = Some(outer),
        _ => {}
    }
    if let Some(place) = params.binding.take() {
        if params.session_id.is_some() || params.session_key.is_some() {
            return Err(Refusal::field("binding", "give one of `session_id`, `session_key` and `binding`"));
        }
        let bound = bindings::at(app, caller, &place).await?;
        authorise::in_session(app, caller, AcpCommand::RunCreate, bound.session_id).await?;
        params.session_id = Some(bound.session_id);
        params.agent = params.agent.or(bound.agent);
    }
    let attachments = attachments::given(app, caller, std::mem::take(&mut params.attachments)).await?;
    let (owner, started_with) = (Some(caller.id().to_owned()), caller.started_with(app));
    let new = NewRun { owner, started_with, attachments, ..new_run(params)? };
    let workspace = app.engine.workspace_of_run(&new).await?;
    workspaces::permit(app, caller, AcpCommand::RunCreate, &workspace).await?;
    app.outside.refresh().await;
    let row = app.engine.create_run(new).await?;
    let last_seq = app.engine.last_seq(row.run_id).await?;
    Ok(views::run(row, last_seq))
}

/// Answers that are judged if nobody says how many.
const DEFAULT_ATTEMPTS: u32 = 3;
/// Most answers that are judged: each costs a whole round of work.
const MAX_ATTEMPTS: u32 = 10;
/// Most bytes of an objective: what a judge takes.
const MAX_OBJECTIVE: usize = 8 << 10;

fn objective(text: Option<String>, max_attempts: Option<u32>) -> Result<Option<Objective>> {
    let Some(text) = text else {
        return match max_attempts {
            Some(_) => Err(Refusal::field("max_attempts", "it requires an `objective`")),
            None => Ok(None),
        };
    };
    if text.trim().is_empty() || text.len() > MAX_OBJECTIVE {
        return Err(Refusal::field("objective", format!("it must have 1 to {MAX_OBJECTIVE} bytes")));
    }
    let max_attempts = max_attempts.unwrap_or(DEFAULT_ATTEMPTS);
    if !(1..=MAX_ATTEMPTS).contains(&max_attempts) {
        return Err(Refusal::field("max_attempts", format!("it must be from 1 to {MAX_ATTEMPTS}")));
    }
    Ok(Some(Objective { text, max_attempts }))
}

fn check_model(model: Option<&str>) -> Result<()> {
    match model {
        Some(model) if model.trim().is_empty() => {
            Err(Refusal::field("model", "it is empty; omit it for the configured model"))
        }
        _ => Ok(()),
    }
}

/// Checks what the engine takes on trust.
fn new_run(params: CreateRunParams) -> Result<NewRun> {
    if params.session_id.is_some() && params.session_key.is_some() {
        return Err(Refusal::field("session_key", "give either `session_id` or `session_key`"));
    }
    for (field, key) in [("session_key", &params.session_key), ("idempotency_key", &params.idempotency_key)] {
        if let Some(key) = key {
            check_key(field, key)?;
        }
    }
    check_model(params.model.as_deref())?;
    if !params.workspace.is_empty() {
        check_workspace(&params.workspace)?;
    }
    let limits = params.limits.unwrap_or_default();
    let zero = [
        ("limits.max_turns", limits.max_turns == Some(0)),
        ("limits.max_tool_calls", limits.max_tool_calls == Some(0)),
        ("limits.wall_clock_seconds", limits.wall_clock_seconds == Some(0)),
    ];
    if let Some((field, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
        return Err(Refusal::field(field, "it must be at least 1"));
    }
    if params.client_tools.len() > MAX_CLIENT_TOOLS {
        return Err(Refusal::field("client_tools", format!("at most {MAX_CLIENT_TOOLS} are allowed")));
    }
    let client_tools = params
        .client_tools
        .into_iter()
        .map(|tool| ClientTool {
            name: tool.name,
            description: tool.description,
            input_schema: tool.input_schema.into(),
        })
        .collect();
    let history = params
        .history
        .into_iter()
        .map(|exchange| GivenExchange { prompt: exchange.prompt, answer: exchange.answer })
        .collect();
    Ok(NewRun {
        prompt: params.prompt,
        workspace: params.workspace,
        session_id: params.session_id,
        session_key: params.session_key,
        model: params.model,
        agent: params.agent,
        mode: params.mode,
        max_turns: limits.max_turns,
        max_tool_calls: limits.max_tool_calls,
        wall_clock_ms: limits.wall_clock_seconds.map(|seconds| seconds.saturating_mul(1000)),
        objective: objective(params.objective, params.max_attempts)?,
        idempotency_key: params.idempotency_key,
        client_tools,
        history,
        ..NewRun::default()
    })
}

/// The daemon's own current directory means nothing to a caller.
pub(super) fn check_workspace(path: &str) -> Result<()> {
    if FilePath::new(path).is_absolute() {
        return Ok(());
    }
    Err(Refusal::field("workspace", format!("`{path}` is not an absolute path")))
}

pub(super) async fn list(app: &App, caller: &Caller, params: ListRunsParams) -> Result<ListRunsResponse> {
    let filter = RunFilter {
        session_id: params.session_id,
        phase: params.phase,
        before: params.before,
        owner: caller.sees(),
        ..RunFilter::default()
    };
    let (runs, next_before) = runs_page(app, filter, params.limit).await?;
    Ok(ListRunsResponse { runs, next_before })
}

/// A page of runs, newest first, and where the next one begins.
pub(super) async fn runs_page(
    app: &App,
    filter: RunFilter,
    limit: Option<u32>,
) -> Result<(Vec<RunView>, Option<RunId>)> {
    let limit = page_size(limit)?;
    // One more than asked for tells whether there is a next page.
    let mut rows = app.engine.runs(RunFilter { limit: limit + 1, ..filter }).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_before = if more { rows.last().map(|row| row.run_id) } else { None };
    Ok((views_of(app, rows).await?, next_before))
}

pub(super) async fn get(app: &App, id: RunId) -> Result<RunDetail> {
    Ok(views::run_detail(app.engine.run_details(id).await?))
}

pub(super) async fn abort(
    app: &App,
    by: &str,
    about: About<RunId, AbortRunParams>,
    version: Option<u64>,
) -> Result<RunView> {
    check_version(app, about.target, version).await?;
    app.engine.cancel(about.target, by, about.params.reason).await?;
    view(app, about.target).await
}

pub(super) async fn pause(app: &App, by: &str, id: RunId, version: Option<u64>) -> Result<RunView> {
    check_version(app, id, version).await?;
    app.engine.pause(id, by).await?;
    view(app, id).await
}

/// Takes the newest summary of a held run's context back.
pub(super) async fn revert_compaction(app: &App, by: &str, id: RunId, version: Option<u64>) -> Result<RunView> {
    check_version(app, id, version).await?;
    app.engine.revert_run_compaction(id, by).await?;
    view(app, id).await
}

pub(super) async fn resume(
    app: &App,
    caller: &Caller,
    about: About<RunId, ResumeRunParams>,
    version: Option<u64>,
) -> Result<RunView> {
    check_version(app, about.target, version).await?;
    let ResumeRunParams { over_budget, model } = about.params;
    check_model(model.as_deref())?;
    in_its_workspace(app, caller, AcpCommand::RunResume, about.target).await?;
    app.engine.resume(about.target, &caller.actor(app), Resumption { over_budget, model }).await?;
    view(app, about.target).await
}

pub(super) async fn input(
    app: &App,
    caller: &Caller,
    about: About<RunId, RunInputParams>,
    version: Option<u64>,
) -> Result<RunView> {
    check_version(app, about.target, version).await?;
    in_its_workspace(app, caller, AcpCommand::RunInput, about.target).await?;
    app.engine.steer(about.target, &caller.actor(app), about.params.text, about.params.mode).await?;
    view(app, about.target).await
}

pub(super) async fn deliver(app: &App, caller: &Caller, about: About<RunId, DeliverResultsParams>) -> Result<RunView> {
    if about.params.results.is_empty() {
        return Err(Refusal::field("results", "there is none"));
    }
    let results = about
        .params
        .results
        .into_iter()
        .map(|result| ClientResult { call_id: result.call_id, content: result.content, is_error: result.is_error })
        .collect();
    in_its_workspace(app, caller, AcpCommand::RunDeliver, about.target).await?;
    app.engine.deliver_client_results(about.target, results, &caller.actor(app)).await?;
    view(app, about.target).await
}

pub(super) async fn edit_envelope(
    app: &App,
    caller: &Caller,
    about: About<RunId, EditEnvelopeParams>,
    version: Option<u64>,
) -> Result<RunDetail> {
    check_version(app, about.target, version).await?;
    let add = about.params.add.into_iter().map(views::mandate).collect();
    in_its_workspace(app, caller, AcpCommand::RunEnvelopeEdit, about.target).await?;
    app.engine.edit_envelope(about.target, &caller.actor(app), add, about.params.remove).await?;
    get(app, about.target).await
}

pub(super) async fn undo(
    app: &App,
    caller: &Caller,
    about: About<RunId, UndoRunParams>,
    version: Option<u64>,
) -> Result<UndoResponse> {
    check_version(app, about.target, version).await?;
    let authority = caller.started_with(app).workspace;
    let UndoRunParams { paths, conflicts } = about.params;
    let options = UndoOptions { paths, conflicts };
    Ok(views::undone(app.engine.undo(about.target, options, caller.id(), authority).await?))
}

pub(super) async fn replay(app: &App, id: RunId) -> Result<ReplayReport> {
    Ok(views::replayed(app.engine.replay(id).await?))
}

/// Whoever may not work where a run does may not have it work there either: what they write is what it does next.
async fn in_its_workspace(app: &App, caller: &Caller, command: AcpCommand, id: RunId) -> Result<()> {
    let run = app.engine.run(id).await?;
    match caller.started_with(app).workspace {
        // A run may be resumed to be told that its directory is gone.
        WorkspaceAuthority::LocalOwner => authorise::in_workspace(app, caller, command, &run.workspace),
        WorkspaceAuthority::Granted | WorkspaceAuthority::Conversation => {
            workspaces::permit(app, caller, command, &run.workspace).await.map(|_| ())
        }
    }
}

/// A run is at the version of its newest event.
async fn check_version(app: &App, id: RunId, expected: Option<u64>) -> Result<()> {
    let Some(expected) = expected else { return Ok(()) };
    let actual = app.engine.last_seq(id).await?;
    if expected == actual {
        return Ok(());
    }
    let message = format!("the run is at version {actual}, not at {expected}");
    Err(StableErrorEnvelope::new("version_conflict", ErrorCategory::Conflict, message)
        .hint("read it again, and repeat the change if it still applies")
        .details(serde_json::json!({"expected": expected, "actual": actual}))
        .into())
}

/// The run as it stands now, for answers to commands that changed it.
pub(super) async fn view(app: &App, run_id: RunId) -> Result<RunView> {
    let row = app.engine.run(run_id).await?;
    let last_seq = app.engine.last_seq(run_id).await?;
    Ok(views::run(row, last_seq))
}

/// Rows with their newest positions, which one read of the journal gives for all.
pub(super) async fn views_of(app: &App, rows: Vec<RunRow>) -> Result<Vec<RunView>> {
    let views = app.journal.read(move |reader| {
        rows.into_iter()
            .map(|row| {
                let last_seq = reader.last_run_seq(row.run_id)?;
                Ok(views::run(row, last_seq))
            })
            .collect::<std::result::Result<Vec<_>, _>>()
    });
    Ok(views.await?)
}

/// How many entries a page has.
pub(super) fn page_size(asked: Option<u32>) -> Result<u32> {
    match asked {
        None => Ok(DEFAULT_PAGE),
        Some(0) => Err(Refusal::field("limit", "it must be at least 1")),
        Some(limit) => Ok(limit.min(MAX_PAGE)),
    }
}
