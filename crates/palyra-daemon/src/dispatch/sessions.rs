//! Commands about sessions.

use palyra_agent::{
    ArchiveState, Archived, CompactionPlan, ForkPoint, NewSession, QueuedInput, Resolved, RunFilter, SessionFilter,
    SessionInput, SessionSettings, Submitted,
};
use palyra_client::api::{
    ArchiveSessionParams, ArchivedFilter, CompactionView, ExplainSessionResponse, ExportFormat, ExportSessionParams,
    ExportSessionResponse, ForkSessionParams, InputFate, ListSessionsParams, ListSessionsResponse, LoadSessionParams,
    NewSessionParams, QueuedInputView, RenameSessionParams, ResolveSessionParams, ResolveSessionResponse,
    ResumeSessionResponse, RevertCompactionResponse, SessionDetail, SessionInputParams, SessionInputResponse,
    SessionQueueResponse, SessionSettingsView, SessionStepView, SessionView, SetBindingParams, SetSessionModeParams,
    WithdrawInputParams,
};
use palyra_client::command::About;
use palyra_common::{AcpCommand, Digest, InputMode, RunId, SessionId};
use serde_json::Value;

use super::caller::Caller;
use super::idempotency::check_key;
use super::refusal::{Refusal, Result};
use super::runs::{check_workspace, page_size, runs_page, view as run_view};
use super::{authorise, bindings, workspaces};
use crate::app::App;
use crate::views;

pub(super) async fn new(
    app: &App,
    caller: &Caller,
    params: NewSessionParams,
    key: Option<String>,
) -> Result<SessionView> {
    if let Some(session_key) = &params.session_key {
        check_key("session_key", session_key)?;
    }
    let _turn = match &params.binding {
        None => None,
        Some(place) => {
            let turn = bindings::hold(app, caller, place).await;
            if let Some(session_id) = bindings::session_of(app, caller, place).await? {
                authorise::in_session(app, caller, AcpCommand::SessionNew, session_id).await?;
                return Ok(views::session(app.engine.session(session_id).await?));
            }
            Some(turn)
        }
    };
    let new = NewSession {
        session_id: key.map(|key| id_of(caller, "session.new", &key)),
        key: params.session_key,
        title: params.title,
        owner: caller.id().to_owned(),
        mode: params.mode,
        settings: settings(app, caller, AcpCommand::SessionNew, params.settings.unwrap_or_default()).await?,
    };
    let row = app.engine.create_session(new).await?;
    if let Some(place) = params.binding {
        let bound = SetBindingParams { place, session_id: row.session_id, agent: None, trusted_senders: Vec::new() };
        bindings::tie(app, caller, bound).await?;
    }
    Ok(views::session(row))
}

/// The id of what a command with a key makes: the same command makes the same thing.
pub(super) fn id_of(caller: &Caller, command: &str, key: &str) -> SessionId {
    let digest = Digest::of_parts(&[command.as_bytes(), caller.id().as_bytes(), key.as_bytes()]);
    let mut bits = [0; 16];
    bits.copy_from_slice(digest.0.first_chunk::<16>().unwrap_or(&[0; 16]));
    SessionId::from_u128(u128::from_be_bytes(bits))
}

async fn settings(
    app: &App,
    caller: &Caller,
    command: AcpCommand,
    view: SessionSettingsView,
) -> Result<SessionSettings> {
    if let Some(workspace) = &view.workspace {
        check_workspace(workspace)?;
        workspaces::permit_later(app, caller, command, workspace).await?;
    }
    if let Some(agent) = &view.agent {
        app.engine.check_agent(agent)?;
    }
    Ok(SessionSettings { model: view.model, workspace: view.workspace, agent: view.agent })
}

pub(super) async fn resolve(
    app: &App,
    caller: &Caller,
    params: ResolveSessionParams,
) -> Result<ResolveSessionResponse> {
    check_key("session_key", &params.session_key)?;
    let (row, resolved) = app.engine.resolve_session(caller.id(), &params.session_key, params.title).await?;
    Ok(ResolveSessionResponse { session: views::session(row), created: resolved == Resolved::Created })
}

pub(super) async fn list(app: &App, caller: &Caller, params: ListSessionsParams) -> Result<ListSessionsResponse> {
    let limit = page_size(params.limit)?;
    let filter = SessionFilter {
        owner: caller.sees(),
        archived: match params.archived {
            None | Some(ArchivedFilter::Hide) => Archived::Hide,
            Some(ArchivedFilter::Only) => Archived::Only,
            Some(ArchivedFilter::Include) => Archived::Include,
        },
        before: params.before,
        // One more than asked for tells whether there is a next page.
        limit: limit + 1,
    };
    let mut rows = app.engine.sessions(filter).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_before = if more { rows.last().map(|row| row.activity) } else { None };
    Ok(ListSessionsResponse { sessions: rows.into_iter().map(views::session).collect(), next_before })
}

pub(super) async fn load(app: &App, about: About<SessionId, LoadSessionParams>) -> Result<SessionDetail> {
    let About { target: id, params } = about;
    let session = views::session(app.engine.session(id).await?);
    let filter = RunFilter { session_id: Some(id), before: params.before, ..RunFilter::default() };
    let (mut runs, next_before) = runs_page(app, filter, params.limit).await?;
    runs.reverse();
    Ok(SessionDetail { session, runs, next_before })
}

pub(super) async fn resume(app: &App, id: SessionId) -> Result<ResumeSessionResponse> {
    let session = views::session(app.engine.session(id).await?);
    let mut active_runs = Vec::new();
    for run_id in app.engine.unfinished_runs() {
        let run = run_view(app, run_id).await?;
        if run.session_id == id && !run.phase.is_terminal() {
            active_runs.push(run);
        }
    }
    active_runs.sort_by_key(|run| run.run_id);
    Ok(ResumeSessionResponse { session, active_runs, queued: queue(app, id).await?.inputs })
}

/// The session as it stands now, for answers to commands that changed it.
pub(super) async fn view(app: &App, id: SessionId) -> Result<SessionView> {
    Ok(views::session(app.engine.session(id).await?))
}

pub(super) async fn rename(
    app: &App,
    by: &str,
    about: About<SessionId, RenameSessionParams>,
    version: Option<u64>,
) -> Result<SessionView> {
    Ok(views::session(app.engine.rename_session(about.target, about.params.title, by, version).await?))
}

pub(super) async fn archive(
    app: &App,
    by: &str,
    about: About<SessionId, ArchiveSessionParams>,
    version: Option<u64>,
) -> Result<SessionView> {
    let state = if about.params.archived { ArchiveState::Archived } else { ArchiveState::Active };
    Ok(views::session(app.engine.archive_session(about.target, state, by, version).await?))
}

pub(super) async fn fork(
    app: &App,
    caller: &Caller,
    about: About<SessionId, ForkSessionParams>,
    key: Option<String>,
) -> Result<SessionView> {
    let ForkSessionParams { run_id, seq, title } = about.params;
    let id = key.map(|key| id_of(caller, "session.fork", &key));
    let point = ForkPoint { run_id, seq };
    Ok(views::session(app.engine.fork_session(about.target, point, caller.id(), title, id).await?))
}

pub(super) async fn export(app: &App, about: About<SessionId, ExportSessionParams>) -> Result<ExportSessionResponse> {
    let export = app.engine.export_session(about.target).await?;
    let format = about.params.format.unwrap_or(ExportFormat::Markdown);
    let (markdown, document) = match format {
        ExportFormat::Markdown => (Some(export.to_markdown()), None),
        ExportFormat::Json => (None, Some(to_value(&export)?)),
    };
    Ok(ExportSessionResponse { format, markdown, document })
}

fn to_value(document: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(document).map_err(|error| Refusal::internal(format!("a document cannot be written: {error}")))
}

pub(super) async fn explain(app: &App, id: SessionId) -> Result<ExplainSessionResponse> {
    let session = views::session(app.engine.session(id).await?);
    let account = app.engine.explain_session(id).await?;
    let mut steps = Vec::new();
    for event in account.events {
        let Value::Object(mut fields) = to_value(&event.what)? else { continue };
        let kind = match fields.remove("event") {
            Some(Value::String(kind)) => kind,
            _ => return Err(Refusal::internal("a step of a session has no name")),
        };
        steps.push(SessionStepView {
            at: event.at,
            by: event.by,
            record: event.record,
            event: kind,
            details: Value::Object(fields),
        });
    }
    Ok(ExplainSessionResponse { session, steps })
}

pub(super) async fn set_mode(
    app: &App,
    by: &str,
    about: About<SessionId, SetSessionModeParams>,
    version: Option<u64>,
) -> Result<SessionView> {
    Ok(views::session(app.engine.set_session_mode(about.target, about.params.mode, by, version).await?))
}

pub(super) async fn set_config(
    app: &App,
    caller: &Caller,
    about: About<SessionId, SessionSettingsView>,
    version: Option<u64>,
) -> Result<SessionView> {
    let settings = settings(app, caller, AcpCommand::SessionConfigSet, about.params).await?;
    Ok(views::session(app.engine.set_session_settings(about.target, settings, caller.id(), version).await?))
}

pub(super) async fn compact_preview(app: &App, id: SessionId) -> Result<CompactionView> {
    Ok(compaction(app.engine.compact_preview(id, None).await?, Applied::No))
}

pub(super) async fn compact_apply(app: &App, by: &str, id: SessionId, version: Option<u64>) -> Result<CompactionView> {
    let (_, plan) = app.engine.compact_apply(id, None, by, version).await?;
    Ok(compaction(plan, Applied::Yes))
}

/// What summarising a session came to that left the first summary from a record of the journal on; nothing if none was made.
pub(super) async fn compacted_at(app: &App, id: SessionId, seq: u64) -> Result<Option<CompactionView>> {
    Ok(app.engine.compaction_applied(id, seq).await?.map(|plan| compaction(plan, Applied::Yes)))
}

pub(super) async fn compact_revert(
    app: &App,
    by: &str,
    id: SessionId,
    version: Option<u64>,
) -> Result<RevertCompactionResponse> {
    let (row, reverted) = app.engine.compact_revert(id, by, version).await?;
    Ok(RevertCompactionResponse {
        session: views::session(row),
        whole_again: reverted.whole_again,
        still_summarised: reverted.still_summarised,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applied {
    Yes,
    No,
}

fn compaction(plan: CompactionPlan, applied: Applied) -> CompactionView {
    let runs = |outlines: &[palyra_agent::ExchangeOutline]| -> Vec<RunId> {
        outlines.iter().filter_map(|outline| outline.run_id).collect()
    };
    CompactionView {
        kept: runs(&plan.kept),
        summarised: runs(&plan.summarised),
        asked: plan.summary.asked,
        answered: plan.summary.answered,
        bytes_before: plan.bytes_before,
        bytes_after: plan.bytes_after,
        applied: applied == Applied::Yes,
        method: plan.summary.method,
        note: plan.note,
    }
}

pub(super) async fn input(
    app: &App,
    caller: &Caller,
    about: About<SessionId, SessionInputParams>,
    key: Option<String>,
) -> Result<SessionInputResponse> {
    let SessionInputParams { text, mode, workspace } = about.params;
    if let Some(workspace) = &workspace {
        check_workspace(workspace)?;
    }
    let effective = app.engine.workspace_of_input(about.target, workspace.as_deref(), None).await?;
    workspaces::permit(app, caller, AcpCommand::SessionInput, &effective).await?;
    app.outside.refresh().await;
    let mode = mode.unwrap_or(InputMode::FollowUp);
    let input = SessionInput {
        text,
        mode,
        workspace,
        by: caller.id().to_owned(),
        given_with: caller.started_with(app),
        // With a key the session itself knows the input again.
        input_id: key.map(|key| id_of(caller, "session.input", &key).to_string()),
        agent: None,
        from: None,
        beside: Vec::new(),
    };
    let (fate, run, queued) = match app.engine.submit_input(about.target, input).await? {
        Submitted::Started(row) => (InputFate::Started, Some(row.run_id), None),
        Submitted::Steered(row) => (InputFate::Steered, Some(row.run_id), None),
        Submitted::Queued { input_id, position } => (InputFate::Queued, None, Some((input_id, position))),
    };
    let run = match run {
        Some(run_id) => Some(run_view(app, run_id).await?),
        None => None,
    };
    let (input_id, position) = queued.unzip();
    Ok(SessionInputResponse { fate, run, input_id, position })
}

pub(super) async fn queue(app: &App, id: SessionId) -> Result<SessionQueueResponse> {
    let view = |input: QueuedInput| QueuedInputView {
        input_id: input.input_id,
        text: input.text,
        mode: input.mode,
        by: input.by,
        at: input.at,
    };
    Ok(SessionQueueResponse { inputs: app.engine.queued_inputs(id).await?.into_iter().map(view).collect() })
}

pub(super) async fn withdraw(
    app: &App,
    by: &str,
    about: About<SessionId, WithdrawInputParams>,
) -> Result<SessionQueueResponse> {
    app.engine.withdraw_input(about.target, &about.params.input_id, by).await?;
    queue(app, about.target).await
}
