//! Runs as text: one line each in lists, a page for one, the effects that one declared, and the closing lines of `palyra run`.

use palyra_client::api::{FileChangeKind, FileChangeView, IntentView, RunAgentView, RunDetail, RunTimings, RunView};
use palyra_common::{ExitCode, RunLifecyclePhase, StatusDetail, TerminationReason, model_advice};

use super::calls;
use super::evidence::{self, Extent};
use super::table;
use super::text::{counted, instant, millis, shortened};
use crate::console::plain;

/// The exit code that a run's end means.
pub(crate) fn exit_code(run: &RunView) -> ExitCode {
    match (run.phase, run.reason) {
        (RunLifecyclePhase::Completed, _) => ExitCode::Ok,
        (_, Some(TerminationReason::ApprovalDenied)) => ExitCode::Policy,
        (_, Some(TerminationReason::ProviderError)) => ExitCode::Connectivity,
        _ => ExitCode::Precondition,
    }
}

/// How a run ended, and why where that says more: `completed`, `cancelled`, `failed (loop_detected)`.
pub(crate) fn outcome(run: &RunView) -> String {
    // The detail is the exact reason; the reason alone is told only where there is none.
    let why = match (&run.detail, run.reason) {
        (Some(detail), _) => Some(shortened(&detail.code, 60)),
        (None, None | Some(TerminationReason::FinalAnswer)) => None,
        (None, Some(reason)) => Some(reason.as_str().to_owned()),
    };
    let mut text = match (run.phase, run.reason, why) {
        (RunLifecyclePhase::Aborted, Some(TerminationReason::Cancellation), _) => "cancelled".to_owned(),
        (phase, _, Some(why)) => format!("{phase} ({why})"),
        (phase, _, None) => phase.to_string(),
    };
    if run.undone {
        text.push_str(", undone");
    }
    text
}

/// Whether a run ended well, with nothing about it that its answer does not say.
pub(crate) fn ended_well(run: &RunView) -> bool {
    let caveat = |detail: &StatusDetail| detail.code != "objective_met";
    run.phase == RunLifecyclePhase::Completed && !run.detail.as_ref().is_some_and(caveat)
}

/// What people say about where the time went.
pub(crate) fn timings(timings: &RunTimings) -> String {
    let mut text = format!(
        "{} in all: model {}, tools {}",
        millis(timings.total_ms),
        millis(timings.model_ms),
        millis(timings.tools_ms)
    );
    if timings.waiting_ms > 0 {
        text.push_str(&format!(", waiting for you {}", millis(timings.waiting_ms)));
    }
    text
}

/// One line per changed file.
pub(crate) fn changes(changes: &[FileChangeView]) -> Vec<String> {
    changes
        .iter()
        .map(|change| {
            let mark = match change.kind {
                FileChangeKind::Created => '+',
                FileChangeKind::Modified => '~',
                FileChangeKind::Deleted => '-',
            };
            format!("{mark} {}", shortened(&change.path, 200))
        })
        .collect()
}

/// What is to be told about an end beside its name. That a cancelled run was cancelled is told already.
fn told(run: &RunView) -> Option<&StatusDetail> {
    run.detail.as_ref().filter(|detail| detail.code != detail.message)
}

/// Why a run ended, in one line, with what to do about it where a model is the reason.
fn why(detail: &StatusDetail) -> String {
    let why = shortened(&detail.message, 300);
    match model_advice(&detail.code) {
        Some(advice) => format!("{why}; {advice}"),
        None => why,
    }
}

/// The closing lines of `palyra run`.
pub(crate) fn summary(detail: &RunDetail) -> Vec<String> {
    let run = &detail.run;
    let mut lines = vec![format!("{} — {}", outcome(run), timings(&detail.timings))];
    lines.extend(told(run).map(|detail| format!("  {}", why(detail))));
    if !detail.changes.is_empty() {
        lines.push(format!("{} changed:", counted(detail.changes.len(), "file")));
        lines.extend(changes(&detail.changes).into_iter().map(|line| format!("  {line}")));
    }
    let id = run.run_id;
    lines.push("where to look next:".to_owned());
    let mut next = |command: String, what: &str| lines.push(format!("  {command:<43}  {what}"));
    next(format!("palyra runs show {id}"), "the answer, the changes, the time");
    next(format!("palyra runs tape {id}"), "every step");
    if !detail.changes.is_empty() && !run.undone {
        next(format!("palyra runs undo {id}"), "take its file changes back");
    }
    next("palyra journal verify".to_owned(), "check that the record is whole");
    lines
}

/// A list of runs.
pub(crate) fn list(runs: &[RunView]) -> Vec<String> {
    let rows: Vec<_> = runs
        .iter()
        .map(|run| {
            [
                run.run_id.to_string(),
                instant(run.created_at),
                outcome(run),
                run.turns.to_string(),
                run.tool_calls.to_string(),
                shortened(&run.prompt, 60),
            ]
        })
        .collect();
    table::lines(["RUN", "CREATED (UTC)", "OUTCOME", "TURNS", "CALLS", "TASK"], &rows)
}

/// The effects that a run declared, one line per tool. Whatever else it tries outside the workspace after it has read untrusted
/// text is asked about first.
pub(crate) fn envelope(intents: &[IntentView]) -> Vec<String> {
    if intents.is_empty() {
        return vec!["declared effects: none".to_owned()];
    }
    intents
        .iter()
        .map(|intent| {
            let tool = shortened(&intent.tool, 100);
            let named: Vec<String> = intent.destinations.iter().map(|named| evidence::cell(named, 200)).collect();
            if named.is_empty() {
                format!("declared effects: {tool} → any destination")
            } else {
                format!("declared effects: {tool} → {}", named.join(", "))
            }
        })
        .collect()
}

/// Everything about one run.
pub(crate) fn page(detail: &RunDetail) -> Vec<String> {
    let run = &detail.run;
    let mut lines = vec![
        format!("run        {}", run.run_id),
        format!("session    {}", run.session_id),
        format!("phase      {}", outcome(run)),
    ];
    lines.extend(told(run).map(|detail| format!("because    {}", why(detail))));
    lines.push(format!("workspace  {}", shortened(&run.workspace, 300)));
    lines.push(format!("model      {}", shortened(&run.model, 100)));
    lines.push(format!("mode       {}", detail.mode));
    if let Some(RunAgentView { agent_id, version: Some(version) }) = &detail.agent {
        lines.push(format!("agent      {}, version {version}", shortened(agent_id, 100)));
    }
    lines.extend(envelope(&detail.envelope));
    lines.push(format!("created    {} UTC", instant(run.created_at)));
    if let Some(ended) = run.ended_at {
        lines.push(format!("ended      {} UTC", instant(ended)));
    }
    lines.push(format!("time       {}", timings(&detail.timings)));
    lines.push(format!(
        "work       {}, {}, {} tokens in, {} out; tape up to {}",
        counted(run.turns as usize, "turn"),
        counted(run.tool_calls as usize, "tool call"),
        detail.usage.input_tokens,
        detail.usage.output_tokens,
        run.last_seq
    ));
    lines.push(String::new());
    lines.push("task".to_owned());
    lines.extend(indented(&run.prompt));
    if let Some(answer) = &detail.answer {
        lines.push("answer".to_owned());
        lines.extend(indented(answer));
    }
    if !detail.changes.is_empty() {
        lines.push("files changed".to_owned());
        lines.extend(changes(&detail.changes).into_iter().map(|line| format!("  {line}")));
    }
    if !detail.not_run.is_empty() {
        lines.push("calls not made".to_owned());
        lines.extend(detail.not_run.iter().map(|call| format!("  ✗ {}", calls::not_run(call))));
    }
    for approval in &detail.pending_approvals {
        lines.push(format!("waits for you: {}", shortened(&approval.summary, 200)));
        lines.extend(evidence::lines(&approval.evidence, Extent::Glance).into_iter().map(|line| format!("  {line}")));
        lines.push(format!("  palyra approvals show {}", approval.approval_id));
        lines.push(format!("  palyra approvals decide {} allow|deny", approval.approval_id));
    }
    lines
}

fn indented(text: &str) -> Vec<String> {
    plain(text).lines().map(|line| format!("  {line}")).collect()
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
