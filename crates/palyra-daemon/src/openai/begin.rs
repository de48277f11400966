//! From a request to a run that is followed: a new one, or one that waits for its client.

use std::path::Path;
use std::sync::Arc;

use palyra_agent::RunRow;
use palyra_client::api::{
    ClientToolParams, CreateRunParams, ForkSessionParams, RunInputParams, RunLimitsParams, RunTapeParams, RunView,
    SessionView,
};
use palyra_client::command::{About, Command, StreamCommand};
use palyra_common::{Digest, ErrorCategory, InputMode, RunId, SessionId, StableErrorEnvelope};
use serde::de::DeserializeOwned;

use super::conversation::{self, Chain, Conversation, Place};
use super::following::Following;
use super::messages::Said;
use super::{deliver, ids, images, workspaces};
use crate::app::App;
use crate::dispatch::{self, Asked, Caller, Refusal, Result};

/// The detail of a run that waits for results of its client.
const CLIENT_TOOLS_PENDING: &str = palyra_agent::machine::CLIENT_TOOLS_PENDING;

/// Characters of a task that name its session.
const TITLE_CHARS: usize = 80;

/// What a request asks for, whichever way it was written.
#[derive(Debug)]
pub(super) struct Wish {
    /// All that was said.
    pub(super) said: Vec<Said>,
    /// The parameter it stands in.
    pub(super) field: &'static str,
    /// The client's own tools.
    pub(super) tools: Vec<ClientToolParams>,
    /// Another model than the configured one.
    pub(super) model: Option<String>,
    /// Where to work.
    pub(super) workspace: Option<String>,
    /// Whether the credential may name directories at all.
    pub(super) may_name_workspaces: bool,
    /// The run of the response that this goes on from; what was said before is in its session.
    pub(super) after: Option<RunId>,
    /// Most calls of tools.
    pub(super) max_tool_calls: Option<u32>,
    /// The same key with the same request is the same run.
    pub(super) key: Option<String>,
    /// The request with its key, if it has one.
    pub(super) request: Option<Chain>,
}

/// Begins what a request asks for. Several commands in a row do that: they go to their end together, or a retry would find half of them done.
pub(super) async fn begin(app: &Arc<App>, caller: Caller, wish: Wish) -> Result<Following> {
    let conversation = Conversation::read(wish.said.clone(), wish.field)?;
    // With a response to go on from, the request holds only the end of the conversation, whose digest would say nothing.
    let chain = wish.after.is_none().then_some(conversation.chain);
    let (shared, owner) = (Arc::clone(app), caller.clone());
    let placed = dispatch::to_the_end(app, async move { place(&shared, &owner, conversation, wish).await });
    let Place { run_id, from_seq } = placed.await?;
    follow(app, caller, run_id, from_seq, chain).await
}

async fn place(app: &Arc<App>, caller: &Caller, conversation: Conversation, wish: Wish) -> Result<Place> {
    if let Some(request) = wish.request
        && let Some(place) = conversation::begun(app, caller, request).await?
    {
        return Ok(place);
    }
    if !conversation.new.results.is_empty() {
        let (run_id, from_seq) =
            deliver::deliver(app, caller, wish.may_name_workspaces, conversation.new, wish.key.as_deref()).await?;
        return Ok(Place { run_id, from_seq });
    }
    let request = wish.request;
    let place = match waiting(app, caller, &conversation, wish.after).await? {
        Some(run_id) => interrupt(app, caller, run_id, &conversation, &wish).await?,
        None => Place { run_id: create(app, caller, conversation, wish).await?.run_id, from_seq: 1 },
    };
    if let Some(request) = request {
        conversation::note(app, caller, request, place).await?;
    }
    Ok(place)
}

/// Lets a run that waits for results go on with something else.
async fn interrupt(
    app: &Arc<App>,
    caller: &Caller,
    run_id: RunId,
    conversation: &Conversation,
    wish: &Wish,
) -> Result<Place> {
    if !conversation.new.images.is_empty() {
        return Err(Refusal::field("input", "images cannot go to a run that waits for results; send them afterwards"));
    }
    let from_seq = app.engine.last_seq(run_id).await? + 1;
    let params = RunInputParams { text: conversation.prompt(), mode: InputMode::Interrupt };
    let command = Command::RunInput(About { target: run_id, params });
    let workspace = app.engine.run(run_id).await?.workspace;
    let caller = reaching(app, caller, wish.may_name_workspaces, &workspace);
    let key = wish.key.as_deref().map(|key| part_of(key, "input"));
    ask::<RunView>(app, &caller, command, key).await?;
    Ok(Place { run_id, from_seq })
}

/// The caller with the directories that this request may use. `models:use` alone gives those that the daemon makes for conversations; a credential that may begin
/// runs elsewhere has its others here too.
pub(super) fn reaching(app: &App, caller: &Caller, may_name: bool, workspace: &str) -> Caller {
    let given = app.workspaces.is_of_conversations(caller.id(), Path::new(workspace));
    if given || !may_name { caller.clone().in_conversation() } else { caller.clone() }
}

/// The run whose calls the client leaves unanswered, to say something else.
async fn waiting(
    app: &Arc<App>,
    caller: &Caller,
    conversation: &Conversation,
    after: Option<RunId>,
) -> Result<Option<RunId>> {
    let asked = conversation.open_calls.first().and_then(|call| ids::read_call(call)).map(|(run_id, _)| run_id);
    let Some(run_id) = asked.or(after) else { return Ok(None) };
    let run = match own_run(app, caller, run_id).await {
        Ok(run) => run,
        // A call of somebody else's making is history like any other; a response is asked for by name.
        Err(refusal) if after.is_some() => return Err(refusal),
        Err(_) => return Ok(None),
    };
    let pending = run.detail.as_ref().is_some_and(|detail| detail.code == CLIENT_TOOLS_PENDING);
    Ok((pending && !run.phase.is_terminal()).then_some(run_id))
}

async fn create(app: &Arc<App>, caller: &Caller, conversation: Conversation, wish: Wish) -> Result<RunView> {
    let prompt = conversation.prompt();
    let (session_id, history, before) = match wish.after {
        Some(run_id) => {
            let run = own_run(app, caller, run_id).await?;
            (Some(session_after(app, caller, &run, wish.key.as_deref()).await?), Vec::new(), Some(run))
        }
        None => {
            let known = conversation::known(app, caller, conversation.earlier).await?;
            (known.last.as_ref().map(|run| run.session_id), known.history, known.last)
        }
    };
    let workspace = match (wish.workspace, before) {
        (Some(named), _) => named,
        (None, Some(run)) => run.workspace,
        (None, None) => workspaces::fresh(app, caller.id(), wish.key.as_deref()).await?,
    };
    let caller = &reaching(app, caller, wish.may_name_workspaces, &workspace);
    let limits = wish.max_tool_calls.map(|calls| RunLimitsParams { max_tool_calls: Some(calls), ..Default::default() });
    let params = CreateRunParams {
        attachments: images::store(app, caller, conversation.new.images).await?,
        objective: None,
        max_attempts: None,
        binding: None,
        session_id,
        session_key: None,
        prompt,
        workspace,
        model: wish.model,
        agent: None,
        mode: None,
        limits,
        client_tools: wish.tools,
        history,
        idempotency_key: None,
    };
    ask(app, caller, Command::RunCreate(params), wish.key).await
}

/// The session in which a response is gone on from; a fork of it where something else came after.
async fn session_after(app: &Arc<App>, caller: &Caller, run: &RunRow, key: Option<&str>) -> Result<SessionId> {
    if conversation::is_newest(app, run).await? {
        return Ok(run.session_id);
    }
    // Named after what was asked where they part; lists show one line.
    let title: String = run.prompt.lines().next().unwrap_or_default().chars().take(TITLE_CHARS).collect();
    let title = Some(title).filter(|title| !title.trim().is_empty() && !title.chars().any(char::is_control));
    let params = ForkSessionParams { run_id: Some(run.run_id), title, ..ForkSessionParams::default() };
    let command = Command::SessionFork(About { target: run.session_id, params });
    let key = key.map(|key| part_of(key, "fork"));
    Ok(ask::<SessionView>(app, caller, command, key).await?.session_id)
}

/// A run of the caller's own. Those of others do not exist here, whatever the caller's role may see elsewhere.
pub(super) async fn own_run(app: &App, caller: &Caller, run_id: RunId) -> Result<RunRow> {
    let run = app.engine.run(run_id).await?;
    if run.owner == caller.id() {
        return Ok(run);
    }
    Err(palyra_agent::AgentError::RunNotFound(run_id).into())
}

/// The key of a command that is only a part of what the client asked for with its key.
pub(super) fn part_of(key: &str, part: &str) -> String {
    format!("openai {part} {}", Digest::of(key.as_bytes()).to_hex())
}

/// Gives a command and reads what came of it.
pub(super) async fn ask<T: DeserializeOwned>(
    app: &Arc<App>,
    caller: &Caller,
    command: Command,
    idempotency_key: Option<String>,
) -> Result<T> {
    let asked = Asked { command, idempotency_key, expected_version: None };
    let answer = dispatch::dispatch(app, caller, asked).await?;
    let value = serde_json::to_value(answer).map_err(|error| Refusal::internal(error.to_string()))?;
    serde_json::from_value(value).map_err(|error| Refusal::internal(format!("an answer does not read: {error}")))
}

/// Follows a run from a position of its tape on.
pub(super) async fn follow(
    app: &Arc<App>,
    caller: Caller,
    run_id: RunId,
    from_seq: u64,
    chain: Option<Chain>,
) -> Result<Following> {
    let params = RunTapeParams { from_seq: Some(from_seq), follow: Some(true), ..RunTapeParams::default() };
    let documents = dispatch::open(app, &caller, StreamCommand::RunTape(About { target: run_id, params })).await?;
    Ok(Following::new(Arc::clone(app), caller, run_id, from_seq, documents, chain))
}

/// A previous response that is none of ours.
pub(super) fn unknown_response(name: &str) -> Refusal {
    let shown: String = name.chars().take(100).collect();
    let message = format!("there is no response `{shown}`");
    StableErrorEnvelope::new("response_not_found", ErrorCategory::NotFound, message)
        .hint("use the `id` of a response from this daemon to the same user, or send the conversation as `input`")
        .into()
}
