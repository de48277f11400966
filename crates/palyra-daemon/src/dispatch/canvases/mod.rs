//! Commands about canvases: pages that agents drew, links to them, and what people do on them.
//!
//! What is entered into a form goes to the canvas's session as its person's next message. A question on an approval card is answered as it would be
//! anywhere else: the caller needs what `approval.decide` needs, and the card only says which questions of its own session are meant.

mod links;

use std::net::SocketAddr;
use std::time::Duration;

use palyra_a2ui::{Approval, Component, Document};
use palyra_agent::{AgentError, CanvasFilter, CanvasRow, CanvasSubmission, Submitted};
use palyra_client::api::{
    CanvasDetail, CanvasLinkResponse, CanvasView, DecideApprovalParams, InputFate, LinkCanvasParams,
    ListCanvasesParams, ListCanvasesResponse, SessionInputResponse, SubmitCanvasParams, SubmitCanvasResponse, paths,
};
use palyra_client::command::{About, Command};
use palyra_common::{
    AcpCommand, ApprovalDecision, ApprovalId, ApprovalScope, CanvasId, Clock as _, ErrorCategory, StableErrorEnvelope,
    SystemClock,
};

use super::caller::Caller;
use super::refusal::{Refusal, Result};
use super::runs::{page_size, view as run_view};
use super::sessions::id_of;
use super::{approvals, authorise, workspaces};
use crate::app::App;
use crate::state::HTTP_ADDRESS;

pub(super) use links::Links;
pub(crate) use links::{Link, link_of};

/// How long a link is good when nobody says how long.
const DEFAULT_LIFE: u64 = 3600;
/// A day: a link is a credential that stands in histories and messages.
const MAX_LIFE: u64 = 24 * 3600;

pub(super) async fn list(app: &App, caller: &Caller, params: ListCanvasesParams) -> Result<ListCanvasesResponse> {
    if let Some(session_id) = params.session_id {
        authorise::in_session(app, caller, AcpCommand::CanvasList, session_id).await?;
    }
    let filter = CanvasFilter {
        session_id: params.session_id,
        owner: caller.sees(),
        include_closed: params.include_closed.unwrap_or(false),
        limit: page_size(params.limit)?,
    };
    let rows = app.engine.canvases(filter).await?;
    Ok(ListCanvasesResponse { canvases: rows.into_iter().map(view).collect() })
}

pub(super) async fn get(app: &App, id: CanvasId) -> Result<CanvasDetail> {
    let (row, document) = app.engine.canvas(id).await?;
    Ok(CanvasDetail { canvas: view(row), document })
}

pub(super) async fn close(app: &App, by: &str, id: CanvasId) -> Result<CanvasView> {
    Ok(view(app.engine.close_canvas(id, by).await?))
}

/// Makes a link.
pub(super) async fn link(
    app: &App,
    caller: &Caller,
    about: About<CanvasId, LinkCanvasParams>,
) -> Result<CanvasLinkResponse> {
    let About { target, params } = about;
    let life = params.expires_in_seconds.unwrap_or(DEFAULT_LIFE);
    if life == 0 || life > MAX_LIFE {
        return Err(Refusal::field("expires_in_seconds", format!("it must be 1 to {MAX_LIFE}")));
    }
    let (row, _) = app.engine.canvas(target).await?;
    if row.closed_at.is_some() {
        return Err(AgentError::CanvasClosed(target).into());
    }
    let origin = origin(app).await?;
    let access = params.access.unwrap_or_default();
    let now = SystemClock.now();
    let expires_at = now.plus(Duration::from_secs(life));
    let token = links::make(app, caller, target, access, expires_at).await?;
    let path = paths::CANVAS_PAGE.replace("{token}", &token);
    Ok(CanvasLinkResponse { url: format!("{origin}{path}"), path, access, expires_at })
}

/// Where browsers reach this daemon.
async fn origin(app: &App) -> Result<String> {
    let written = tokio::fs::read_to_string(app.state_root.join(HTTP_ADDRESS)).await.ok();
    let Some(address) = written.and_then(|text| text.trim().parse::<SocketAddr>().ok()) else {
        let message = "this daemon does not serve HTTP, so a browser cannot open its canvases";
        return Err(StableErrorEnvelope::new("canvas_links_off", ErrorCategory::Conflict, message)
            .hint("set `daemon.http_enabled` and restart it; `canvas.get` shows the document without a browser")
            .into());
    };
    // An address that means "all of them" is none to go to.
    let host =
        if address.ip().is_unspecified() { SocketAddr::new([127, 0, 0, 1].into(), address.port()) } else { address };
    let scheme = if app.config.config().http.tls { "https" } else { "http" };
    Ok(format!("{scheme}://{host}"))
}

/// Takes what a person did.
pub(super) async fn submit(
    app: &App,
    caller: &Caller,
    about: About<CanvasId, SubmitCanvasParams>,
    version: Option<u64>,
    key: Option<String>,
) -> Result<SubmitCanvasResponse> {
    let About { target, params } = about;
    if params.once.as_deref().is_some_and(|once| !is_plain(once)) {
        return Err(Refusal::field("once", "it must have 1 to 64 letters, digits, `_` and `-`"));
    }
    let expected_version = match (params.expected_version, version) {
        (Some(inside), Some(around)) if inside != around => {
            return Err(Refusal::field("expected_version", "the request names two different versions"));
        }
        (inside, around) => inside.or(around),
    };
    let (row, document) = app.engine.canvas(target).await?;
    let document = Document::parse(&document)?;
    if let Some(Component::Approval(card)) = document.component(&params.component_id) {
        return answer(app, caller, &row, card, &params, expected_version).await;
    }
    if params.action.as_deref().is_some_and(|action| action != "submit") {
        return Err(Refusal::field("action", "a form is submitted with `submit`"));
    }
    let workspace = app.engine.workspace_of_input(row.session_id, None, None).await?;
    workspaces::permit(app, caller, AcpCommand::CanvasSubmit, &workspace).await?;
    app.outside.refresh().await;
    let submission = CanvasSubmission {
        component_id: params.component_id,
        values: params.values,
        expected_version,
        by: caller.id().to_owned(),
        given_with: caller.started_with(app),
        via: caller.via(),
        // With a key the session itself knows the form again.
        once: params.once.or_else(|| key.map(|key| id_of(caller, "canvas.submit", &key).to_string())),
    };
    let (fate, run, queued) = match app.engine.submit_to_canvas(target, submission).await? {
        Submitted::Started(row) => (InputFate::Started, Some(row.run_id), None),
        Submitted::Steered(row) => (InputFate::Steered, Some(row.run_id), None),
        Submitted::Queued { input_id, position } => (InputFate::Queued, None, Some((input_id, position))),
    };
    let run = match run {
        Some(run_id) => Some(run_view(app, run_id).await?),
        None => None,
    };
    let (input_id, position) = queued.unzip();
    Ok(SubmitCanvasResponse { input: Some(SessionInputResponse { fate, run, input_id, position }), approval: None })
}

/// The question that a submission answers, if it answers one.
pub(super) async fn question_of(
    app: &App,
    canvas: CanvasId,
    params: &SubmitCanvasParams,
) -> Result<Option<ApprovalId>> {
    let (_, document) = app.engine.canvas(canvas).await?;
    let document = Document::parse(&document)?;
    let Some(Component::Approval(card)) = document.component(&params.component_id) else { return Ok(None) };
    Ok(params.approval_id.or_else(|| shown_on(card)))
}

/// The question that a card shows.
fn shown_on(card: &Approval) -> Option<ApprovalId> {
    card.approval_id.as_ref().and_then(|id| id.parse().ok())
}

/// Answers a question of a card.
async fn answer(
    app: &App,
    caller: &Caller,
    row: &CanvasRow,
    card: &Approval,
    params: &SubmitCanvasParams,
    expected_version: Option<u64>,
) -> Result<SubmitCanvasResponse> {
    let decision = match params.action.as_deref() {
        Some("allow") => ApprovalDecision::Allow,
        Some("deny") => ApprovalDecision::Deny,
        _ => return Err(Refusal::field("action", "a question is answered with `allow` or `deny`")),
    };
    if row.closed_at.is_some() {
        return Err(AgentError::CanvasClosed(row.canvas_id).into());
    }
    if let Some(expected) = expected_version.filter(|expected| *expected != row.version) {
        return Err(palyra_a2ui::A2uiError::Version { expected, actual: row.version }.into());
    }
    let target = match (params.approval_id, shown_on(card)) {
        (Some(named), Some(shown)) if named != shown => {
            return Err(Refusal::field("approval_id", "the card shows another question"));
        }
        (named, shown) => named.or(shown).ok_or_else(|| Refusal::field("approval_id", "name the question"))?,
    };
    let params = DecideApprovalParams { decision, scope: ApprovalScope::Once, minutes: None, reason: None };
    let command = Command::ApprovalDecide(About { target, params: params.clone() });
    authorise::command(app, caller, &command).await?;
    // A card shows questions of its own session, so these are the ones that are answered on it.
    if approvals::look_at(app, target).await?.session_id != Some(row.session_id) {
        return Err(AgentError::ApprovalNotFound(target.to_string()).into());
    }
    let decided = approvals::decide(app, caller, About { target, params }).await?;
    Ok(SubmitCanvasResponse { input: None, approval: Some(decided.approval) })
}

fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

fn view(row: CanvasRow) -> CanvasView {
    CanvasView {
        canvas_id: row.canvas_id,
        session_id: row.session_id,
        run_id: row.run_id,
        title: row.title,
        version: row.version,
        label: row.label,
        created_at: row.created_at,
        updated_at: row.updated_at,
        closed_at: row.closed_at,
    }
}
