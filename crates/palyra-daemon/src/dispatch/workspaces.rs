//! Commands about granted directories, and the check of every directory that a command names.

use palyra_agent::WorkspaceAuthority;
use palyra_client::api::{ListWorkspacesResponse, WorkspaceGrantParams, WorkspaceGrantView};
use palyra_common::{AcpCommand, Clock as _, ErrorCategory, StableErrorEnvelope, SystemClock};
use palyra_identity::PrincipalId;
use palyra_tools::{Roots, Workspace};

use super::authorise;
use super::caller::Caller;
use super::records;
use super::refusal::{Refusal, Result};
use crate::app::App;
use crate::workspaces::{CHANGED, Changed, ConfiguredRoot, Granted};

/// Refuses a directory in which the caller's runs may not work, or in which policy does not permit this command.
/// Gives it without links.
pub(super) async fn permit(app: &App, caller: &Caller, command: AcpCommand, path: &str) -> Result<String> {
    let authority = caller.started_with(app).workspace;
    let real = app.engine.check_workspace(path, caller.id(), authority).await?;
    authorise::in_workspace(app, caller, command, &real)?;
    Ok(real)
}

/// The same for a directory that is only noted for later runs, each of which is checked when it begins: the local owner may name one that is yet to be made.
pub(super) async fn permit_later(app: &App, caller: &Caller, command: AcpCommand, path: &str) -> Result<()> {
    match caller.started_with(app).workspace {
        WorkspaceAuthority::LocalOwner => authorise::in_workspace(app, caller, command, path),
        WorkspaceAuthority::Granted | WorkspaceAuthority::Conversation => {
            permit(app, caller, command, path).await.map(|_| ())
        }
    }
}

/// Grants a directory. Nobody but the local owner grants what is not granted to them.
pub(super) async fn grant(app: &App, caller: &Caller, params: WorkspaceGrantParams) -> Result<WorkspaceGrantView> {
    let principal = principal(&params.principal)?;
    let path = match caller.started_with(app).workspace {
        WorkspaceAuthority::LocalOwner => own_directory(app, params.path).await?,
        authority => app.engine.check_workspace(&params.path, caller.id(), authority).await?,
    };
    let _turn = app.workspaces.changing.lock().await;
    if let Some(known) = app.workspaces.find(principal.as_str(), &path) {
        return Ok(view(known));
    }
    let (by, at) = (caller.id().to_owned(), SystemClock.now());
    let granted = Granted { principal: principal.to_string(), path, by, at };
    let Granted { principal, path, by, at } = granted.clone();
    record(app, Changed::Granted { principal, path, by, at }).await?;
    Ok(view(granted))
}

/// The local owner may grant any directory but Palyra's own.
async fn own_directory(app: &App, path: String) -> Result<String> {
    super::runs::check_workspace(&path)?;
    let protected = vec![app.state_root.clone()];
    let opening = move || {
        let anywhere = Roots::Anywhere { except: Vec::new(), granted: Vec::new() };
        Workspace::open(path, &anywhere, &protected).map(|workspace| workspace.root().display().to_string())
    };
    let opened = tokio::task::spawn_blocking(opening).await.map_err(|error| Refusal::internal(error.to_string()))?;
    Ok(opened?)
}

/// Takes a directory back, also one that is not there any more. Runs at work go on; no run begins there.
pub(super) async fn revoke(app: &App, caller: &Caller, params: WorkspaceGrantParams) -> Result<WorkspaceGrantView> {
    let _turn = app.workspaces.changing.lock().await;
    let known = known(app, &params).await?;
    let (by, at) = (caller.id().to_owned(), SystemClock.now());
    record(app, Changed::Revoked { principal: known.principal.clone(), path: known.path.clone(), by, at }).await?;
    Ok(view(known))
}

/// What is about to be taken back.
pub(super) async fn granted(app: &App, params: &WorkspaceGrantParams) -> Result<WorkspaceGrantView> {
    known(app, params).await.map(view)
}

async fn known(app: &App, params: &WorkspaceGrantParams) -> Result<Granted> {
    let principal = principal(&params.principal)?;
    let named = params.path.clone();
    let real = tokio::task::spawn_blocking(move || std::fs::canonicalize(named)).await;
    let real = real.ok().and_then(|found| found.ok()).map(|path| path.display().to_string());
    let find = |path: &str| app.workspaces.find(principal.as_str(), path);
    let known = find(&params.path).or_else(|| real.as_deref().and_then(find));
    known.ok_or_else(|| not_granted(principal.as_str(), &params.path))
}

async fn record(app: &App, changed: Changed) -> Result<()> {
    app.journal.append(vec![records::record(CHANGED, SystemClock.now(), &changed)?]).await?;
    app.workspaces.apply(changed);
    Ok(())
}

pub(super) fn list(app: &App) -> ListWorkspacesResponse {
    let (granted, configured) = app.workspaces.list();
    let configured = configured.iter().map(|ConfiguredRoot { principal, path }| WorkspaceGrantView {
        principal: principal.clone(),
        path: path.display().to_string(),
        granted_by: None,
        granted_at: None,
    });
    let mut workspaces: Vec<_> = configured.chain(granted.into_iter().map(view)).collect();
    workspaces.sort_by(|a, b| (&a.principal, &a.path).cmp(&(&b.principal, &b.path)));
    ListWorkspacesResponse { workspaces }
}

/// A bare name means a person or program of that name.
fn principal(text: &str) -> Result<PrincipalId> {
    let id = if text.contains(':') { text.to_owned() } else { format!("user:{text}") };
    id.parse().map_err(|_| Refusal::field("principal", format!("`{text}` is not the name of a principal")))
}

fn view(granted: Granted) -> WorkspaceGrantView {
    WorkspaceGrantView {
        principal: granted.principal,
        path: granted.path,
        granted_by: Some(granted.by),
        granted_at: Some(granted.at),
    }
}

fn not_granted(principal: &str, path: &str) -> Refusal {
    let message = format!("`{path}` is not granted to {principal}");
    StableErrorEnvelope::new("workspace_grant_not_found", ErrorCategory::NotFound, message)
        .hint("`palyra workspaces list` shows what is granted; roots of the configuration are removed there")
        .into()
}
