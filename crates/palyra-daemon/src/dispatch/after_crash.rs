//! What becomes of a command whose daemon died before it could answer, when it is given again under the same key.
//!
//! The first commit of such a command begins with a record that names its key. Where there is none, the command changed nothing on the journal and is simply carried out.
//! Where there is one, the answer is what the journal says now about the thing that was changed, or what was noted of it before it was removed.

use palyra_client::api::{
    AppendEventResponse, DecideApprovalResponse, ListPatternsParams, RemoveAgentResponse, RevertCompactionResponse,
    SubmitCanvasResponse,
};
use palyra_client::command::{Command, Outcome};
use serde_json::Value;

use super::caller::Caller;
use super::idempotency::stored;
use super::records::Earlier;
use super::refusal::{Refusal, Result};
use super::{agents, approvals, bindings, canvases, hooks, publishers, runs, sessions, skills, tokens, workspaces};
use crate::app::App;
use crate::views;

/// How an unanswered command is dealt with.
#[derive(Debug)]
pub(super) enum Resolution {
    /// It is carried out: it has not begun, or doing it twice is the same as doing it once.
    Execute,
    /// This is what it came to.
    Answered(Value),
    /// Nothing on the journal tells.
    Unknown,
}

/// What the journal can tell about a command that was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traces {
    /// Doing it twice is the same as doing it once: things whose id comes from the key or from their content, and questions to a model that change nothing.
    Repeatable,
    /// Its first commit holds all that it does: without one it has not begun, and with one the answer can mostly be read from the journal.
    Journaled,
    /// It acts beside the journal, or answers what only its own course knows.
    None,
}

/// What the journal can tell about each command. Reads are never accepted under a key; they change nothing.
fn traces(command: &Command) -> Traces {
    match command {
        // The answer to a question; a form goes in under a name that comes from the key.
        Command::CanvasSubmit(about) => match about.params.action.as_deref() {
            Some("allow" | "deny") => Traces::Journaled,
            _ => Traces::Repeatable,
        },
        Command::SessionNew(_)
        | Command::SessionFork(_)
        | Command::SessionResolve(_)
        | Command::SessionCompactApply(_)
        | Command::SessionRecall(_)
        | Command::SessionInput(_)
        | Command::AuxiliaryRun(_)
        | Command::ApprovalRequest(_)
        | Command::CanvasClose(_)
        | Command::MessageRoute(_)
        | Command::AttachmentAdd(_)
        | Command::DeviceRevoke(_)
        | Command::WorkspaceGrant(_)
        | Command::SkillUpload(_)
        | Command::SkillAudit(_)
        | Command::SkillConfigure(_)
        | Command::HookSet(_)
        | Command::DaemonStop(_)
        | Command::RunCreate(_) => Traces::Repeatable,
        Command::SessionCompactRevert(_)
        | Command::SessionRename(_)
        | Command::SessionArchive(_)
        | Command::SessionModeSet(_)
        | Command::SessionConfigSet(_)
        | Command::RunEnvelopeEdit(_)
        | Command::BindingSet(_)
        | Command::AgentSet(_)
        | Command::SessionInputWithdraw(_)
        | Command::RunAbort(_)
        | Command::RunPause(_)
        | Command::RunResume(_)
        | Command::RunInput(_)
        | Command::RunDeliver(_)
        | Command::RunUndo(_)
        | Command::RunCompactRevert(_)
        | Command::ApprovalDecide(_)
        | Command::PatternRevoke(_)
        | Command::TokenRevoke(_)
        | Command::WorkspaceRevoke(_)
        | Command::BindingRemove(_)
        | Command::AgentRemove(_)
        | Command::EventAppend(_)
        | Command::SkillInstall(_)
        | Command::SkillRemove(_)
        | Command::SkillEnable(_)
        | Command::SkillDisable(_)
        | Command::SkillQuarantine(_)
        | Command::PublisherTrust(_)
        | Command::PublisherUntrust(_)
        | Command::PublisherImport(_)
        | Command::PublisherRevokeKey(_)
        | Command::HookRemove(_) => Traces::Journaled,
        // What it answers about is no longer listed once it is endorsed.
        Command::FileEndorse(_)
        // These write files, run programs, or answer a secret that is never stored.
        | Command::JournalBackup(_)
        | Command::SkillCall(_)
        | Command::TokenCreate(_)
        | Command::TokenRotate(_)
        | Command::CanvasLink(_) => Traces::None,
        Command::SessionList(_)
        | Command::SessionLoad(_)
        | Command::SessionResume(_)
        | Command::SessionExport(_)
        | Command::SessionExplain(_)
        | Command::SessionCompactPreview(_)
        | Command::SessionQueue(_)
        | Command::RunList(_)
        | Command::RunGet(_)
        | Command::RunContext(_)
        | Command::RunReplay(_)
        | Command::AuxiliaryList(_)
        | Command::AuxiliaryGet(_)
        | Command::ModelsStatus(_)
        | Command::ModelsExplain(_)
        | Command::ModelsOffered(_)
        | Command::ModelsTest(_)
        | Command::UsageReport(_)
        | Command::ApprovalList(_)
        | Command::ApprovalGet(_)
        | Command::PatternList(_)
        | Command::ToolList(_)
        | Command::PolicyList(_)
        | Command::ConfigGet(_)
        | Command::JournalProve(_)
        | Command::TokenList(_)
        | Command::DeviceList(_)
        | Command::WorkspaceList(_)
        | Command::FileLabels(_)
        | Command::BindingList(_)
        | Command::BindingGet(_)
        | Command::CanvasList(_)
        | Command::CanvasGet(_)
        | Command::AgentList(_)
        | Command::AgentGet(_)
        | Command::SkillList(_)
        | Command::SkillGet(_)
        | Command::PublisherList(_)
        | Command::HookList(_)
        | Command::PrincipalShow(_)
        | Command::Reconnect(_) => Traces::Repeatable,
    }
}

/// Says how to go on with a command that was accepted under a key and not answered.
pub(super) async fn resolve(app: &App, caller: &Caller, command: &Command, earlier: &Earlier) -> Result<Resolution> {
    match (traces(command), earlier.effect) {
        (Traces::Repeatable, _) => Ok(Resolution::Execute),
        (Traces::Journaled, None) if earlier.marked => Ok(Resolution::Execute),
        (Traces::Journaled | Traces::None, None) | (Traces::None, Some(_)) => Ok(Resolution::Unknown),
        (Traces::Journaled, Some(effect)) => match (rebuilt(app, caller, command, effect).await?, &earlier.before) {
            (Some(outcome), _) => Ok(Resolution::Answered(stored(&outcome)?)),
            (None, Some(before)) => Ok(Resolution::Answered(before.clone())),
            (None, None) => Ok(Resolution::Unknown),
        },
    }
}

/// What a command that removes something is going to answer: afterwards nobody could read it any more.
pub(super) async fn before(app: &App, command: &Command) -> Option<Value> {
    let outcome = match command {
        Command::BindingRemove(about) => Outcome::BindingRemove(bindings::get(app, about.target).await.ok()?.into()),
        Command::AgentRemove(about) => {
            let agent = agents::get(app, &about.target.0).ok()?;
            let untied = bindings::without_agent(app, "", &about.target.0).await.ok()?;
            let removed_bindings = u32::try_from(untied.len()).unwrap_or(u32::MAX);
            Outcome::AgentRemove(RemoveAgentResponse { agent, removed_bindings }.into())
        }
        Command::WorkspaceRevoke(params) => {
            Outcome::WorkspaceRevoke(workspaces::granted(app, params).await.ok()?.into())
        }
        Command::SkillRemove(about) => Outcome::SkillRemove(skills::one(app, &about.target.0).ok()?.into()),
        Command::HookRemove(about) => {
            let mut bound = hooks::list(app).await.ok()?.hooks;
            bound.retain(|hook| hook.hook_id == about.target.0);
            Outcome::HookRemove(bound.pop()?.into())
        }
        _ => return None,
    };
    stored(&outcome).ok()
}

/// The answer of a command whose first commit begins at `effect`; none if the journal does not hold it, because the thing is gone or the answer tells more than what
/// was committed.
async fn rebuilt(app: &App, caller: &Caller, command: &Command, effect: u64) -> Result<Option<Outcome>> {
    Ok(Some(match command {
        // Given again, these would find their own change where they expect another version.
        Command::SessionRename(about) => Outcome::SessionRename(sessions::view(app, about.target).await?.into()),
        Command::SessionArchive(about) => Outcome::SessionArchive(sessions::view(app, about.target).await?.into()),
        Command::SessionModeSet(about) => Outcome::SessionModeSet(sessions::view(app, about.target).await?.into()),
        Command::SessionConfigSet(about) => Outcome::SessionConfigSet(sessions::view(app, about.target).await?.into()),
        Command::RunEnvelopeEdit(about) => Outcome::RunEnvelopeEdit(runs::get(app, about.target).await?.into()),
        Command::BindingSet(params) => Outcome::BindingSet(bindings::at(app, caller, &params.place).await?.into()),
        Command::AgentSet(params) => Outcome::AgentSet(agents::get(app, &params.agent_id)?.into()),
        Command::RunAbort(about) => Outcome::RunAbort(runs::view(app, about.target).await?.into()),
        Command::RunPause(about) => Outcome::RunPause(runs::view(app, about.target).await?.into()),
        Command::RunResume(about) => Outcome::RunResume(runs::view(app, about.target).await?.into()),
        Command::RunInput(about) => Outcome::RunInput(runs::view(app, about.target).await?.into()),
        Command::RunDeliver(about) => Outcome::RunDeliver(runs::view(app, about.target).await?.into()),
        Command::RunCompactRevert(about) => Outcome::RunCompactRevert(runs::view(app, about.target).await?.into()),
        Command::RunUndo(about) => {
            let undone = app.engine.undone(about.target).await?;
            let undone = undone.ok_or_else(|| Refusal::internal("an undo left no trace on its run"))?;
            Outcome::RunUndo(views::undone(undone).into())
        }
        Command::SessionCompactRevert(about) => {
            let (row, reverted) = app.engine.compaction_reverted(about.target, effect).await?;
            let response = RevertCompactionResponse {
                session: views::session(row),
                whole_again: reverted.whole_again,
                still_summarised: reverted.still_summarised,
            };
            Outcome::SessionCompactRevert(response.into())
        }
        Command::SessionInputWithdraw(about) => {
            Outcome::SessionInputWithdraw(sessions::queue(app, about.target).await?.into())
        }
        Command::ApprovalDecide(about) => {
            let approval = approvals::look_at(app, about.target).await?;
            let run = match approval.run_id {
                Some(run_id) => Some(runs::view(app, run_id).await?),
                None => None,
            };
            Outcome::ApprovalDecide(DecideApprovalResponse { approval, run }.into())
        }
        Command::PatternRevoke(_) => {
            Outcome::PatternRevoke(approvals::patterns(app, caller, ListPatternsParams::default()).await?.into())
        }
        Command::CanvasSubmit(about) => match canvases::question_of(app, about.target, &about.params).await? {
            Some(question) => {
                let approval = Some(approvals::look_at(app, question).await?);
                Outcome::CanvasSubmit(SubmitCanvasResponse { input: None, approval }.into())
            }
            None => return Ok(None),
        },
        Command::EventAppend(_) => {
            let seq = effect + 1;
            let hash = app.journal.read(move |reader| reader.record(seq)).await?.hash;
            Outcome::EventAppend(AppendEventResponse { seq, hash }.into())
        }
        Command::SkillEnable(about) => Outcome::SkillEnable(skills::one(app, &about.target.0)?.into()),
        Command::SkillDisable(about) => Outcome::SkillDisable(skills::one(app, &about.target.0)?.into()),
        Command::SkillQuarantine(about) => Outcome::SkillQuarantine(skills::one(app, &about.target.0)?.into()),
        Command::TokenRevoke(about) => Outcome::TokenRevoke(tokens::named(app, &about.target)?.into()),
        Command::SkillInstall(_) => match app.skills.changed_at(effect + 1).await? {
            Some(changed) => match changed.events.iter().find_map(|event| event.skill_id()) {
                Some(skill_id) => Outcome::SkillInstall(skills::get(app, skill_id.as_str()).await?.into()),
                None => return Ok(None),
            },
            None => return Ok(None),
        },
        Command::PublisherImport(params) => match app.skills.changed_at(effect + 1).await? {
            Some(changed) => Outcome::PublisherImport(publishers::imported_before(app, params, &changed)?.into()),
            None => return Ok(None),
        },
        Command::PublisherRevokeKey(params) => match app.skills.changed_at(effect + 1).await? {
            Some(changed) => Outcome::PublisherRevokeKey(publishers::key_revoked_before(params, &changed)?.into()),
            None => return Ok(None),
        },
        Command::PublisherTrust(params) => Outcome::PublisherTrust(publishers::named(app, &params.publisher)?.into()),
        Command::PublisherUntrust(about) => Outcome::PublisherUntrust(publishers::named(app, &about.target.0)?.into()),
        _ => return Ok(None),
    }))
}
