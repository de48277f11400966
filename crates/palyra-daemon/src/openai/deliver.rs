//! Results of the client's tools: they name their calls, calls name their run, and the run goes on.

use std::collections::BTreeSet;
use std::sync::Arc;

use palyra_agent::RunRow;
use palyra_client::api::{ClientResultParams, DeliverResultsParams, RunInputParams, RunTapeParams, RunView};
use palyra_client::command::{About, Command, StreamCommand};
use palyra_common::{Digest, ErrorCategory, InputMode, RunId, RunStreamBody, StableErrorEnvelope};

use super::begin::{ask, own_run, part_of, reaching};
use super::conversation::New;
use super::ids;
use crate::app::App;
use crate::dispatch::{self, Caller, HeldPage, Page, Refusal, Result};

/// Delivers results; says which run goes on and where on its tape it does. The same results delivered again change nothing.
pub(super) async fn deliver(
    app: &Arc<App>,
    caller: &Caller,
    may_name_workspaces: bool,
    new: New,
    key: Option<&str>,
) -> Result<(RunId, u64)> {
    let (run, results) = read(app, caller, &new).await?;
    let caller = &reaching(app, caller, may_name_workspaces, &run.workspace);
    let given: BTreeSet<&str> = results.iter().map(|result| result.call_id.as_str()).collect();
    let pending = app.engine.pending_client_calls(run.run_id).await?;
    let missing = pending.iter().find(|call| !given.contains(call.call_id.as_str()));
    if let Some(call) = missing.filter(|_| pending.iter().any(|call| given.contains(call.call_id.as_str()))) {
        return Err(missing_result(&ids::call(run.run_id, &call.call_id)));
    }
    let digest = Digest::of_parts(
        &results.iter().flat_map(|result| [result.call_id.as_bytes(), result.content.as_bytes()]).collect::<Vec<_>>(),
    );
    let once = format!("{} {}", run.run_id, given.iter().copied().collect::<Vec<_>>().join(" "));
    if !new.text.trim().is_empty() {
        // Before the results, so that it is read together with them.
        let params = RunInputParams { text: new.text, mode: InputMode::Steer };
        let command = Command::RunInput(About { target: run.run_id, params });
        let once = key.map_or_else(|| format!("{} {digest}", run.run_id), str::to_owned);
        ask::<RunView>(app, caller, command, Some(part_of(&once, "words"))).await?;
    }
    let calls_of_the_answer: BTreeSet<String> = given.into_iter().map(str::to_owned).collect();
    let command = Command::RunDeliver(About { target: run.run_id, params: DeliverResultsParams { results } });
    // The calls are the key: the same results are delivered once, and other results for the same calls are a conflict.
    ask::<RunView>(app, caller, command, Some(part_of(&once, "results"))).await?;
    let from_seq = position_of_results(app, caller, run.run_id, &calls_of_the_answer).await?;
    Ok((run.run_id, from_seq))
}

/// All results belong to calls of one run of the caller.
async fn read(app: &Arc<App>, caller: &Caller, new: &New) -> Result<(RunRow, Vec<ClientResultParams>)> {
    let mut run: Option<RunRow> = None;
    let mut results = Vec::new();
    for (call, content, at) in &new.results {
        let Some((run_id, call_id)) = ids::read_call(call) else { return Err(unknown_call(call, at)) };
        match &run {
            None => run = Some(own_run(app, caller, run_id).await.map_err(|_| unknown_call(call, at))?),
            Some(run) if run.run_id == run_id => {}
            Some(_) => return Err(Refusal::field(at, "results of two different runs cannot be delivered together")),
        }
        results.push(ClientResultParams { call_id, content: content.clone(), is_error: false });
    }
    match run {
        Some(run) => Ok((run, results)),
        None => Err(Refusal::internal("results without a call")),
    }
}

/// Where the first of these results is on the tape; the answer begins there.
async fn position_of_results(app: &Arc<App>, caller: &Caller, run_id: RunId, calls: &BTreeSet<String>) -> Result<u64> {
    let command = StreamCommand::RunTape(About { target: run_id, params: RunTapeParams::default() });
    let mut tape = dispatch::open(app, caller, command).await?;
    while let Some(HeldPage { page, .. }) = tape.next().await? {
        let Page::Events(events) = page else { continue };
        let found = events
            .iter()
            .find(|event| matches!(&event.body, RunStreamBody::ToolResult(result) if calls.contains(&result.call_id)));
        if let Some(event) = found {
            return Ok(event.seq);
        }
    }
    Err(Refusal::internal("delivered results are not on the tape"))
}

fn unknown_call(call: &str, at: &str) -> Refusal {
    let shown: String = call.chars().take(64).collect();
    let message = format!("no run waits for a result of the call `{shown}`");
    let mut envelope = StableErrorEnvelope::new("tool_call_unknown", ErrorCategory::Validation, message.clone())
        .hint("send each result with the id of its call, to the daemon that made the call, as the same user");
    envelope.validation_errors.push(palyra_common::FieldError {
        field: at.to_owned(),
        code: "unknown".to_owned(),
        message,
    });
    envelope.into()
}

fn missing_result(call: &str) -> Refusal {
    let message = format!("the result of the call `{call}` is missing");
    StableErrorEnvelope::new("tool_result_missing", ErrorCategory::Validation, message)
        .hint("send the results of all calls of an answer together")
        .into()
}
