//! One call of a tool: its arguments as a command, the command through the dispatcher, and the wait for a run.
//!
//! A refusal is a result that says so, with the same envelope as everywhere: an agent can read it and do better. A client that goes away ends its waiting and
//! nothing else.

use std::sync::Arc;
use std::time::Duration;

use palyra_client::api::{RunDetail, RunTapeParams};
use palyra_client::command::{self, About, Command, NoParams, Outcome, StreamCommand};
use palyra_common::{AcpCommand, RunId, RunLifecyclePhase, RunStreamBody, RunStreamEvent};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::time::Instant;

use super::tools::{DEFAULT_WAIT_SECONDS, MAX_WAIT_SECONDS, Offered, Then, WAIT};
use crate::app::App;
use crate::dispatch::{self, Answer, Asked, Caller, HeldPage, Refusal, Result};

/// How often a client that asked for it hears that the run is still at work.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Carries out one call.
pub(super) async fn tool(
    app: &Arc<App>,
    caller: &Caller,
    offered: &Offered,
    arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    match carried_out(app, caller, offered, arguments, context).await {
        Ok(value) => CallToolResult::structured(value),
        Err(refusal) => refused(&refusal),
    }
}

async fn carried_out(
    app: &Arc<App>,
    caller: &Caller,
    offered: &Offered,
    mut arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<Value> {
    if let Some(field) = offered.without.iter().find(|field| arguments.contains_key(**field)) {
        return Err(Refusal::field(field, "this tool has no such argument"));
    }
    let wait = match offered.then {
        Then::Answer => None,
        Then::WaitForRun => Some(wait_of(&mut arguments, offered.command)?),
    };
    let parsed = Command::from_value(offered.command, Value::Object(arguments));
    let command = parsed.ok_or_else(|| Refusal::from(command::not_available(offered.command)))??;
    let Some(wait) = wait else {
        let answer = dispatch::dispatch(app, caller, command.into()).await?;
        return written(&answer);
    };
    let run_id = match command {
        Command::RunGet(about) => about.target,
        command => begun(app, caller, command).await?,
    };
    let waited = wait_for(app, caller, run_id, wait, context).await;
    // Whoever lost their credential meanwhile hears nothing more.
    app.gate.still_good(&caller.principal)?;
    written(&waited.map_err(|refusal| told_of(refusal, offered.command, run_id))?)
}

fn wait_of(arguments: &mut JsonObject, command: AcpCommand) -> Result<Duration> {
    let default = if command == AcpCommand::RunGet { 0 } else { DEFAULT_WAIT_SECONDS };
    let seconds = match arguments.remove(WAIT) {
        None => default,
        Some(given) => given
            .as_u64()
            .filter(|seconds| *seconds <= MAX_WAIT_SECONDS)
            .ok_or_else(|| Refusal::field(WAIT, format!("it must be 0 to {MAX_WAIT_SECONDS}")))?,
    };
    Ok(Duration::from_secs(seconds))
}

/// Begins a run, or finds the one that its key began.
async fn begun(app: &Arc<App>, caller: &Caller, command: Command) -> Result<RunId> {
    // The key is lifted into the envelope, so that a repetition is told as one.
    let key = match &command {
        Command::RunCreate(params) => params.idempotency_key.clone(),
        _ => None,
    };
    let asked = Asked { command, idempotency_key: key, expected_version: None };
    let found = match dispatch::dispatch(app, caller, asked).await? {
        Answer::Fresh(Outcome::RunCreate(run)) => Some(run.run_id),
        Answer::Stored(value) => value.get("run_id").and_then(Value::as_str).and_then(|id| id.parse().ok()),
        Answer::Fresh(_) => None,
    };
    found.ok_or_else(|| Refusal::internal("a run was started, but its id is not known"))
}

/// The run when it is over or waits for a person, or as it stands when the time is up.
async fn wait_for(
    app: &Arc<App>,
    caller: &Caller,
    run_id: RunId,
    wait: Duration,
    context: &RequestContext<RoleServer>,
) -> Result<RunDetail> {
    let until = Instant::now() + wait;
    let seen = look_at(app, caller, run_id).await?;
    if wait.is_zero() || stands_still(seen.run.phase) {
        return Ok(seen);
    }
    let params =
        RunTapeParams { from_seq: Some(seen.run.last_seq + 1), follow: Some(true), ..RunTapeParams::default() };
    let mut documents = dispatch::open(app, caller, StreamCommand::RunTape(About { target: run_id, params })).await?;
    let mut ticks = tokio::time::interval(PROGRESS_EVERY);
    let (token, mut ticked) = (context.meta.get_progress_token(), 0_u32);
    loop {
        tokio::select! {
            page = documents.next() => {
                let Some(HeldPage { page, .. }) = page? else { break };
                let mut still = false;
                let _ = page.each(|document| {
                    still |= document.event().is_some_and(halts);
                    Ok::<_, std::convert::Infallible>(())
                });
                if still {
                    break;
                }
            }
            _ = ticks.tick() => {
                if let Some(token) = &token {
                    let progress = ProgressNotificationParam::new(token.clone(), f64::from(ticked));
                    // A client that does not listen finds the run again with `run_get`.
                    let _ = context.peer.notify_progress(progress).await;
                    ticked = ticked.saturating_add(1);
                }
            }
            () = tokio::time::sleep_until(until) => break,
            () = context.ct.cancelled() => break,
            () = app.closing.cancelled() => return Err(Refusal::stopping()),
        }
    }
    look_at(app, caller, run_id).await
}

async fn look_at(app: &Arc<App>, caller: &Caller, run_id: RunId) -> Result<RunDetail> {
    let command = Command::RunGet(About { target: run_id, params: NoParams {} });
    match dispatch::dispatch(app, caller, command.into()).await? {
        Answer::Fresh(Outcome::RunGet(run)) => Ok(*run),
        _ => Err(Refusal::internal("a look at a run came to something else")),
    }
}

/// Whether nothing happens until somebody does something.
fn stands_still(phase: RunLifecyclePhase) -> bool {
    phase.is_terminal() || matches!(phase, RunLifecyclePhase::WaitingForApproval | RunLifecyclePhase::Paused)
}

fn halts(event: &RunStreamEvent) -> bool {
    matches!(&event.body, RunStreamBody::Status(status) if status.progress.is_none() && stands_still(status.phase))
}

/// A refusal after a run was begun has to name the run, or it would be lost to its agent.
fn told_of(refusal: Refusal, command: AcpCommand, run_id: RunId) -> Refusal {
    if command != AcpCommand::RunCreate {
        return refusal;
    }
    let mut envelope = refusal.into_envelope();
    envelope.message =
        format!("run {run_id} was started and continues, but waiting for it failed: {}", envelope.message);
    envelope.into()
}

fn written(answer: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(answer).map_err(|error| Refusal::internal(format!("an answer cannot be written: {error}")))
}

fn refused(refusal: &Refusal) -> CallToolResult {
    let envelope = refusal.envelope();
    let hint = envelope.recovery_hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let mut result =
        CallToolResult::error(vec![ContentBlock::text(format!("{} [{}]{hint}", envelope.message, envelope.code))]);
    result.structured_content = serde_json::to_value(envelope).ok();
    result
}
