//! Whether this caller may give this command about this thing: Cedar decides, with facts that the journal has.

use palyra_client::command::{self, Command, StreamCommand, TargetKind};
use palyra_common::{
    AcpCommand, ApprovalId, AuxiliaryTaskId, BindingId, CanvasId, Clock as _, CommandEffect, ErrorCategory, RunId,
    SessionId, StableErrorEnvelope, SystemClock, TokenScope, ToolVerdict,
};
use palyra_policy::{CommandRequest, Decision};

use super::bindings;
use super::caller::Caller;
use super::facts::facts;
use super::refusal::{Refusal, Result};
use super::requests;
use crate::app::App;

/// Refuses a command that policy does not permit.
pub(super) async fn command(app: &App, caller: &Caller, command: &Command) -> Result<()> {
    let target = command.target();
    permit(app, caller, command.name(), target.as_ref().map(|(kind, id)| (*kind, id.as_str()))).await?;
    match facts(command).session {
        Some(session_id) => in_session(app, caller, command.name(), session_id).await,
        None => Ok(()),
    }
}

/// Refuses a command that policy does not permit in this session.
pub(super) async fn in_session(app: &App, caller: &Caller, name: AcpCommand, session_id: SessionId) -> Result<()> {
    permit(app, caller, name, Some((TargetKind::Session, &session_id.to_string()))).await
}

/// Refuses a command that policy does not permit about this run.
pub(super) async fn in_run(app: &App, caller: &Caller, name: AcpCommand, run_id: RunId) -> Result<()> {
    permit(app, caller, name, Some((TargetKind::Run, &run_id.to_string()))).await
}

/// Refuses a command that policy does not permit with this directory to work in.
pub(super) fn in_workspace(app: &App, caller: &Caller, name: AcpCommand, path: &str) -> Result<()> {
    decide(app, caller, name, None, Some(path))
}

/// What is served beside the catalogue and decided like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// `GET /v1/models`.
    OpenAiModels,
    /// `POST /v1/embeddings`.
    OpenAiEmbeddings,
    /// `GET /metrics`.
    Metrics,
}

impl Beside {
    /// Its name to policies, the scope it needs and what it does.
    const fn facts(self) -> (&'static str, TokenScope, CommandEffect) {
        match self {
            Self::OpenAiModels => ("openai.models", TokenScope::ModelsUse, CommandEffect::Read),
            Self::OpenAiEmbeddings => ("openai.embeddings", TokenScope::ModelsUse, CommandEffect::Change),
            Self::Metrics => ("metrics.read", TokenScope::MetricsRead, CommandEffect::Read),
        }
    }
}

/// Refuses what policy does not permit beside the catalogue.
pub(crate) fn beside(app: &App, caller: &Caller, what: Beside) -> Result<()> {
    let (name, scope, effect) = what.facts();
    decided(app, caller, Wanted { name, scope, effect, owner: None, workspace: None })
}

/// The same for files that arrive as a form.
pub(super) async fn upload(app: &App, caller: &Caller) -> Result<()> {
    permit(app, caller, AcpCommand::AttachmentAdd, None).await
}

/// The same for a command that is answered with a stream.
pub(super) async fn stream(app: &App, caller: &Caller, command: &StreamCommand) -> Result<()> {
    let target = command.target();
    permit(app, caller, command.name(), target.as_ref().map(|(kind, id)| (*kind, id.as_str()))).await
}

async fn permit(app: &App, caller: &Caller, name: AcpCommand, target: Option<(TargetKind, &str)>) -> Result<()> {
    let owner = match target {
        Some((kind, id)) => owner_of(app, kind, id).await?,
        None => None,
    };
    decide(app, caller, name, owner.as_deref(), None)
}

fn decide(app: &App, caller: &Caller, name: AcpCommand, owner: Option<&str>, workspace: Option<&str>) -> Result<()> {
    let Some(spec) = command::spec(name) else { return Err(command::not_available(name).into()) };
    decided(app, caller, Wanted { name: name.as_str(), scope: spec.scope, effect: spec.effect, owner, workspace })
}

/// What somebody wants to do, as policies see it.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    name: &'a str,
    scope: TokenScope,
    effect: CommandEffect,
    owner: Option<&'a str>,
    workspace: Option<&'a str>,
}

fn decided(app: &App, caller: &Caller, wanted: Wanted<'_>) -> Result<()> {
    let Wanted { name, scope, effect, owner, workspace } = wanted;
    let principal = &caller.principal;
    let device = principal.device().map(|id| id.to_string());
    let decision = app.policies.decide_command(&CommandRequest {
        principal_id: principal.id.as_str(),
        device: device.as_deref(),
        role: principal.role,
        scopes: &principal.scopes,
        via: principal.via.as_str(),
        command: name,
        scope,
        effect,
        owner,
        workspace,
        now: SystemClock.now(),
    });
    if decision.verdict == ToolVerdict::Permit {
        return Ok(());
    }
    Err(refused(name, &decision))
}

fn refused(name: &str, decision: &Decision) -> Refusal {
    let why = decision.person.join("; ");
    let message = format!("`{name}` is not permitted: {why}");
    StableErrorEnvelope::new("command_denied", ErrorCategory::Policy, message)
        .hint("use a credential with the role and scope it needs, or ask the owner of this daemon")
        .details(serde_json::json!({"command": name, "policies": decision.policies}))
        .into()
}

/// Whose the thing is; a thing that does not exist is refused by whatever the command would have done with it.
async fn owner_of(app: &App, kind: TargetKind, id: &str) -> Result<Option<String>> {
    fn parsed<T: std::str::FromStr>(kind: TargetKind, id: &str) -> Result<T> {
        id.parse().map_err(|_| Refusal::field(kind.field(), "it is not an id"))
    }
    Ok(match kind {
        TargetKind::Session => Some(app.engine.session(parsed::<SessionId>(kind, id)?).await?.owner),
        TargetKind::Run => Some(app.engine.run(parsed::<RunId>(kind, id)?).await?.owner),
        TargetKind::Approval => {
            let id = parsed::<ApprovalId>(kind, id)?;
            if let Some(question) = requests::find(app, id).await? {
                return Ok(Some(question.asked.owner));
            }
            let row = app.engine.approval(id).await?;
            let row = row.ok_or_else(|| palyra_agent::AgentError::ApprovalNotFound(id.to_string()))?;
            Some(app.engine.run(row.run_id).await?.owner)
        }
        TargetKind::AuxiliaryTask => Some(app.engine.auxiliary_task(parsed::<AuxiliaryTaskId>(kind, id)?).await?.owner),
        TargetKind::Canvas => {
            let (canvas, _) = app.engine.canvas(parsed::<CanvasId>(kind, id)?).await?;
            Some(app.engine.session(canvas.session_id).await?.owner)
        }
        TargetKind::Binding => Some(bindings::get(app, parsed::<BindingId>(kind, id)?).await?.owner),
        // These belong to the daemon: whoever administers it decides about them.
        TargetKind::Device
        | TargetKind::Skill
        | TargetKind::Publisher
        | TargetKind::Hook
        | TargetKind::Agent
        | TargetKind::Token
        | TargetKind::Record => None,
    })
}
