//! What hooks are told about a run.
//!
//! Everything is taken from the machine, at the moment the hooks are asked and again after a crash. Each payload says by a label how far what it holds may be
//! trusted. Arguments are told whole: a guard that saw only their beginning could be got round by making them longer.

use palyra_common::{HookEvent, Label, RunLifecycleHookPhase, Timestamp};
use serde_json::{Value, json};

use super::Request;
use crate::hooks::{HookOccurrence, event_of};
use crate::machine::{Activity, Call, CallState, Ending, HookStep, Machine, Phase};

/// Most of a task that hooks are told, in bytes.
const PROMPT_BYTES: usize = 64 << 10;

/// The occurrence that hooks are asked about, if the step still waits for them.
pub(super) fn occurrence(machine: &Machine, request: &Request, at: Timestamp) -> Option<HookOccurrence> {
    let spec = machine.spec();
    let (payload, label) = of(machine, request)?;
    let event: HookEvent = event_of(request.phase);
    Some(HookOccurrence {
        id: request.occurrence_id.clone(),
        event,
        at,
        run_id: Some(spec.run_id),
        session_id: Some(spec.session_id),
        label,
        payload,
    })
}

/// The payload of a request, and its label.
pub(super) fn of(machine: &Machine, request: &Request) -> Option<(Value, Label)> {
    let (mut payload, label) = match request.phase {
        RunLifecycleHookPhase::BeforeRun => before_run(machine),
        RunLifecycleHookPhase::BeforeTool => before_tool(machine, machine.call(request.call_id.as_deref()?)?)?,
        RunLifecycleHookPhase::AfterTool => after_tool(machine.call(request.call_id.as_deref()?)?)?,
        RunLifecycleHookPhase::BeforeDelivery => before_delivery(machine)?,
        RunLifecycleHookPhase::AfterRun => after_run(machine)?,
    };
    if let Value::Object(members) = &mut payload {
        members.insert("owner".to_owned(), json!(machine.spec().owner));
        members.insert("agent".to_owned(), json!(machine.spec().agent));
        members.insert("mode".to_owned(), json!(machine.spec().mode));
        members.insert("label".to_owned(), json!(label));
    }
    Some((payload, label))
}

fn before_run(machine: &Machine) -> (Value, Label) {
    let spec = machine.spec();
    let end = spec.prompt.floor_char_boundary(PROMPT_BYTES);
    let payload = json!({
        "prompt": spec.prompt.get(..end).unwrap_or_default(),
        "truncated": end < spec.prompt.len(),
        "attachments": spec.attachments.iter().map(|item| &item.source).collect::<Vec<_>>(),
        "workspace": spec.workspace,
        "model": { "provider": spec.model.provider, "name": spec.model.name },
    });
    (payload, machine.seen())
}

fn before_tool(machine: &Machine, call: &Call) -> Option<(Value, Label)> {
    let CallState::Screening(screening) = &call.state else { return None };
    let facts = &screening.facts;
    // What references to variables stand for is in the arguments.
    let readings = call
        .references
        .iter()
        .filter_map(|reference| machine.readings().iter().find(|reading| reading.variable == Some(reference.variable)));
    let label = readings.fold(facts.seen.clone(), |joined, reading| joined.join(&reading.label));
    let payload = json!({
        "call_id": call.call_id,
        "tool": call.tool,
        "arguments": call.arguments,
        "resource": facts.resource,
        "summary": facts.summary,
        "risk": facts.risk,
        "verdict": screening.verdict,
        "reasons": screening.reasons,
        "seen": facts.seen,
        "evidence": facts.evidence,
    });
    Some((payload, label))
}

fn after_tool(call: &Call) -> Option<(Value, Label)> {
    let CallState::Reviewing(reviewing) = &call.state else { return None };
    let result = &reviewing.result;
    let payload = json!({
        "call_id": call.call_id,
        "tool": call.tool,
        "arguments": call.arguments,
        "resource": reviewing.facts.resource,
        "ok": result.error.is_none(),
        "error": result.error.as_ref().map(|error| json!({ "code": error.code, "message": error.message })),
        "content": reviewing.content,
        "truncated": reviewing.more || result.truncated,
        "suspicions": result.suspicions,
        "changes": result.changes,
        "duration_ms": result.duration_ms,
    });
    Some((payload, reviewing.label.join(&reviewing.facts.seen)))
}

fn before_delivery(machine: &Machine) -> Option<(Value, Label)> {
    let (Phase::Running(Activity::Hooks(wait)) | Phase::Paused(Activity::Hooks(wait))) = machine.state() else {
        return None;
    };
    let HookStep::BeforeDelivery(Ending { answer: Some((answer, label)), .. }) = &wait.step else { return None };
    let counters = machine.counters();
    let payload = json!({ "answer": answer, "turns": counters.turns, "tool_calls": counters.tool_calls });
    Some((payload, label.clone()))
}

fn after_run(machine: &Machine) -> Option<(Value, Label)> {
    let (Phase::Completed(end) | Phase::Failed(end) | Phase::Aborted(end) | Phase::Expired(end)) = machine.state()
    else {
        return None;
    };
    let counters = machine.counters();
    let payload = json!({
        "phase": machine.phase(),
        "reason": end.reason,
        "detail": end.detail,
        "answer": end.answer.as_ref().map(|(answer, _)| answer),
        "turns": counters.turns,
        "tool_calls": counters.tool_calls,
        "input_tokens": counters.input_tokens,
        "output_tokens": counters.output_tokens,
        "active_ms": counters.active_ms,
    });
    let label = end.answer.as_ref().map_or_else(|| machine.seen(), |(_, label)| label.clone());
    Some((payload, label))
}
