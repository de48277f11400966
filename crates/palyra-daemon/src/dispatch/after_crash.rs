//! What becomes of a command whose daemon died before it could answer, when it is given again under the same key.
//!
//! The first commit of such a command begins with a record that names its key. Where there is none, the command changed nothing on the journal and is simply carried out.
//! Where there is one, the answer is what the journal says now about the thing that was changed, or what was noted of it before it was removed.

use palyra_client::api::{
    AppendEventResponse, BindingPlace, DecideApprovalResponse, ImportStatementParams, ListPatternsParams,
    RemoveAgentResponse, RevertCompactionResponse, RevokeKeyParams, SubmitCanvasParams, SubmitCanvasResponse,
    WorkspaceGrantParams,
};
use palyra_client::command::{Command, TokenName};
use palyra_common::{ApprovalId, BindingId, CanvasId, RunId, SessionId};
use serde::Serialize;
use serde_json::Value;

use super::caller::Caller;
use super::facts::facts;
use super::records::Earlier;
use super::refusal::{Refusal, Result};
use super::{
    agents, approvals, bindings, canvases, files, hooks, publishers, runs, sessions, skills, tokens, workspaces,
};
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
#[derive(Debug, Clone, Copy)]
pub(super) enum Traces<'a> {
    /// Doing it twice is the same as doing it once: things whose id comes from the key or from their content, and questions to a model that change nothing.
    Repeatable,
    /// Its first commit holds all that it does: without one it has not begun, and with one the answer is what the journal says of this.
    Journaled(Subject<'a>),
    /// The same, but nobody can read of it afterwards; what it was is noted before.
    Removed(Removed<'a>),
    /// It has a model write a summary of a session first, which leaves records of its own, and commits the summary last.
    Summary(SessionId),
    /// It answers a secret, which is never stored, and is therefore not accepted under a key.
    Secret,
    /// It acts beside the journal, or answers what only its own course knows.
    None,
}

/// What the answer of a command tells about that changed something.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject<'a> {
    Session(SessionId),
    /// Which inputs wait.
    Queue(SessionId),
    /// A summary that was taken back.
    Compaction(SessionId),
    Run(RunId),
    RunDetail(RunId),
    Undo(RunId),
    Approval(ApprovalId),
    Patterns,
    /// An answer that was given on a canvas.
    CanvasAnswer(CanvasId, &'a SubmitCanvasParams),
    Binding(&'a BindingPlace),
    Agent(&'a str),
    Token(&'a TokenName),
    /// The first record after the mark.
    Event,
    Skill(&'a str),
    /// Whichever skill the first record after the mark tells of.
    InstalledSkill,
    Publisher(&'a str),
    /// The file that the first record after the mark tells of: once it is endorsed it is no longer listed.
    Endorsement,
    Statement(&'a ImportStatementParams),
    PublisherKey(&'a RevokeKeyParams),
}

/// What a command removes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Removed<'a> {
    Binding(BindingId),
    Agent(&'a str),
    Workspace(&'a WorkspaceGrantParams),
    Skill(&'a str),
    Hook(&'a str),
}

/// Says how to go on with a command that was accepted under a key and not answered.
pub(super) async fn resolve(app: &App, caller: &Caller, command: &Command, earlier: &Earlier) -> Result<Resolution> {
    let answer = match (facts(command).traces, earlier.effect) {
        (Traces::Repeatable, _) => return Ok(Resolution::Execute),
        (Traces::Journaled(_) | Traces::Removed(_) | Traces::Summary(_), None) if earlier.marked => {
            return Ok(Resolution::Execute);
        }
        (Traces::Journaled(subject), Some(effect)) => rebuilt(app, caller, subject, effect).await?,
        (Traces::Removed(_), Some(_)) => earlier.before.clone(),
        (Traces::Summary(session_id), Some(effect)) => match sessions::compacted_at(app, session_id, effect).await? {
            // Given again it would find nothing left to summarise.
            Some(compacted) => Some(json(&compacted)?),
            None => return Ok(Resolution::Execute),
        },
        (Traces::Journaled(_) | Traces::Removed(_) | Traces::Summary(_), None) | (Traces::Secret | Traces::None, _) => {
            None
        }
    };
    Ok(answer.map_or(Resolution::Unknown, Resolution::Answered))
}

/// What a command that removes something is going to answer: afterwards nobody could read it any more.
pub(super) async fn before(app: &App, command: &Command) -> Option<Value> {
    let Traces::Removed(removed) = facts(command).traces else { return None };
    let answer = match removed {
        Removed::Binding(id) => json(&bindings::get(app, id).await.ok()?),
        Removed::Agent(name) => {
            let agent = agents::get(app, name).ok()?;
            let untied = bindings::without_agent(app, "", name).await.ok()?;
            let removed_bindings = u32::try_from(untied.len()).unwrap_or(u32::MAX);
            json(&RemoveAgentResponse { agent, removed_bindings })
        }
        Removed::Workspace(params) => json(&workspaces::granted(app, params).await.ok()?),
        Removed::Skill(name) => json(&skills::one(app, name).ok()?),
        Removed::Hook(name) => {
            let mut bound = hooks::list(app).await.ok()?.hooks;
            bound.retain(|hook| hook.hook_id == name);
            json(&bound.pop()?)
        }
    };
    answer.ok()
}

/// The answer of a command whose first commit begins at `effect`; none if it tells more than what was committed.
async fn rebuilt(app: &App, caller: &Caller, subject: Subject<'_>, effect: u64) -> Result<Option<Value>> {
    let answer = match subject {
        // Given again, most of these would find their own change where they expect another version.
        Subject::Session(id) => json(&sessions::view(app, id).await?),
        Subject::Queue(id) => json(&sessions::queue(app, id).await?),
        Subject::Compaction(id) => {
            let (row, reverted) = app.engine.compaction_reverted(id, effect).await?;
            json(&RevertCompactionResponse {
                session: views::session(row),
                whole_again: reverted.whole_again,
                still_summarised: reverted.still_summarised,
            })
        }
        Subject::Run(id) => json(&runs::view(app, id).await?),
        Subject::RunDetail(id) => json(&runs::get(app, id).await?),
        Subject::Undo(id) => {
            let undone = app.engine.undone(id).await?;
            let undone = undone.ok_or_else(|| Refusal::internal("an undo left no trace on its run"))?;
            json(&views::undone(undone))
        }
        Subject::Approval(id) => {
            let approval = approvals::look_at(app, id).await?;
            let run = match approval.run_id {
                Some(run_id) => Some(runs::view(app, run_id).await?),
                None => None,
            };
            json(&DecideApprovalResponse { approval, run })
        }
        Subject::Patterns => json(&approvals::patterns(app, caller, ListPatternsParams::default()).await?),
        Subject::CanvasAnswer(id, params) => {
            let Some(question) = canvases::question_of(app, id, params).await? else { return Ok(None) };
            let approval = Some(approvals::look_at(app, question).await?);
            json(&SubmitCanvasResponse { input: None, approval })
        }
        Subject::Binding(place) => json(&bindings::at(app, caller, place).await?),
        Subject::Agent(name) => json(&agents::get(app, name)?),
        Subject::Token(name) => json(&tokens::named(app, name)?),
        Subject::Event => {
            let seq = effect + 1;
            let hash = app.journal.read(move |reader| reader.record(seq)).await?.hash;
            json(&AppendEventResponse { seq, hash })
        }
        Subject::Endorsement => {
            let Some(endorsed) = files::endorsed_at(app, effect + 1).await? else { return Ok(None) };
            json(&endorsed)
        }
        Subject::Skill(name) => json(&skills::one(app, name)?),
        Subject::InstalledSkill => {
            let Some(changed) = app.skills.changed_at(effect + 1).await? else { return Ok(None) };
            let Some(id) = changed.events.iter().find_map(|event| event.skill_id()) else { return Ok(None) };
            json(&skills::get(app, id.as_str()).await?)
        }
        Subject::Publisher(name) => json(&publishers::named(app, name)?),
        Subject::Statement(params) => {
            let Some(changed) = app.skills.changed_at(effect + 1).await? else { return Ok(None) };
            json(&publishers::imported_before(app, params, &changed)?)
        }
        Subject::PublisherKey(params) => {
            let Some(changed) = app.skills.changed_at(effect + 1).await? else { return Ok(None) };
            json(&publishers::key_revoked_before(params, &changed)?)
        }
    };
    answer.map(Some)
}

fn json(answer: &impl Serialize) -> Result<Value> {
    serde_json::to_value(answer).map_err(|error| Refusal::internal(format!("an answer cannot be written: {error}")))
}
