//! Runs as text: one line each in lists, a page for one, and the closing lines of `palyra run`.

use palyra_client::api::{
    FileChangeKind, FileChangeView, RunAgentView, RunDetail, RunTimings, RunUsage, RunView, UnavailableToolsView,
};
use palyra_common::{
    ChangeAttribution, ExitCode, RunLifecyclePhase, StatusDetail, TerminationReason, ToStableError as _, model_advice,
};
use palyra_models::{ModelError, ModelErrorClass};

use super::calls;
use super::evidence::{self, Extent};
use super::text::{counted, instant, millis, minute, shortened};
use super::{intents, plan, table};
use crate::console::plain;

/// The exit code that a run's end means.
pub(crate) fn exit_code(run: &RunView) -> ExitCode {
    match (run.phase, run.reason) {
        (RunLifecyclePhase::Completed, _) => ExitCode::Ok,
        (_, Some(TerminationReason::ApprovalDenied)) => ExitCode::Policy,
        (_, Some(TerminationReason::ProviderError)) => {
            run.detail.as_ref().and_then(|detail| model_exit_code(&detail.code)).unwrap_or(ExitCode::Connectivity)
        }
        _ => ExitCode::Precondition,
    }
}

/// The exit code of a failed model call: the same whether a run ended by it or a command met it.
fn model_exit_code(code: &str) -> Option<ExitCode> {
    if code == "content_policy" {
        return Some(ExitCode::Policy);
    }
    let envelopes = ModelErrorClass::ALL.iter().map(|class| ModelError::new(*class, "").to_stable());
    envelopes.into_iter().find(|envelope| envelope.code == code).map(|envelope| envelope.exit_code())
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

/// Where the time went.
pub(crate) fn timings(timings: &RunTimings) -> String {
    let parts = [("model", timings.model_ms), ("tools", timings.tools_ms), ("waiting for you", timings.waiting_ms)];
    let parts: Vec<String> =
        parts.iter().filter(|(_, spent)| *spent > 0).map(|(on, spent)| format!("{on} {}", millis(*spent))).collect();
    let total = millis(timings.total_ms);
    if parts.is_empty() { total } else { format!("{total} ({})", parts.join(", ")) }
}

/// Where a run's time went; the offline planner is not a model.
fn spent(detail: &RunDetail) -> RunTimings {
    let model_ms = if detail.run.model.starts_with("offline/") { 0 } else { detail.timings.model_ms };
    RunTimings { model_ms, ..detail.timings }
}

/// What the model consumed and cost; nothing for a run without a language model.
pub(crate) fn usage(usage: &RunUsage) -> Option<String> {
    if usage.input_tokens == 0 && usage.output_tokens == 0 {
        return None;
    }
    let input = usize::try_from(usage.input_tokens).unwrap_or(usize::MAX);
    let tokens = format!("{} in, {} out", counted(input, "token"), usage.output_tokens);
    Some(match usage.cost {
        Some(cost) => {
            // A price or a count that was not known makes the amount an estimate, and the highest it can be.
            let mark = if usage.cost_assumed { "at most " } else { "" };
            format!("{tokens}, {mark}{cost}")
        }
        None => tokens,
    })
}

/// A changed file.
fn changed(change: &FileChangeView) -> String {
    let mark = match change.kind {
        FileChangeKind::Created => '+',
        FileChangeKind::Modified => '~',
        FileChangeKind::Deleted => '-',
    };
    format!("  {mark} {}", shortened(&change.path, 200))
}

/// What is added to a file that somebody else may have changed.
fn certainty(attribution: ChangeAttribution) -> &'static str {
    match attribution {
        ChangeAttribution::Written => "",
        ChangeAttribution::Observed => " (changed during a call)",
        ChangeAttribution::Contested => " (changed during a call, perhaps also by someone else)",
    }
}

/// What is to be told about an end beside its name. That a cancelled run was cancelled is told already.
fn told(run: &RunView) -> Option<&StatusDetail> {
    run.detail.as_ref().filter(|detail| detail.code != detail.message)
}

/// Whether a short answer, which was just printed, begins with the reason.
fn stands_above(reason: &StatusDetail, detail: &RunDetail) -> bool {
    let answer = detail.answer.as_deref().unwrap_or_default().trim();
    let first = answer.lines().next().unwrap_or_default();
    reason.code == "task_not_done"
        && answer.lines().count() <= 3
        && first.trim_end_matches([':', '.', ' ']).eq_ignore_ascii_case(&reason.message)
}

/// Why a run ended, in one line, with what to do about it where a model is the reason.
fn why(detail: &StatusDetail) -> String {
    let why = shortened(&detail.message, 300);
    match model_advice(&detail.code) {
        Some(advice) => format!("{why}; {advice}"),
        None => why,
    }
}

/// What is said beyond what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Where to look next.
    WhereToLook,
    /// Nothing.
    None,
}

/// The closing lines of `palyra run`.
pub(crate) fn summary(detail: &RunDetail, advice: Advice) -> Vec<String> {
    let run = &detail.run;
    // Where the run itself took back all that it changed, nobody has undone anything.
    let shown = RunView { undone: run.undone && !detail.changes.is_empty(), ..run.clone() };
    let mut first = format!("{} in {}", outcome(&shown), timings(&spent(detail)));
    if let Some(usage) = usage(&detail.usage) {
        first.push_str(&format!(", {usage}"));
    }
    let mut lines = vec![first];
    lines.extend(told(run).filter(|reason| !stands_above(reason, detail)).map(|detail| format!("  {}", why(detail))));
    let id = run.run_id;
    if !detail.changes.is_empty() {
        let undo = if run.undone { String::new() } else { format!(" (to undo: palyra runs undo {id})") };
        lines.push(format!("{} changed{undo}:", counted(detail.changes.len(), "file")));
        lines.extend(detail.changes.iter().map(changed));
    }
    if advice == Advice::WhereToLook {
        lines.push("where to look next:".to_owned());
        let mut next = |command: String, what: &str| lines.push(format!("  {command:<43}  {what}"));
        next(format!("palyra runs show {id}"), "the answer, the changes, the time");
        next(format!("palyra runs tape {id}"), "every step");
        next("palyra journal verify".to_owned(), "check that the record is complete");
    }
    lines
}

/// A list of runs.
pub(crate) fn list(runs: &[RunView]) -> Vec<String> {
    let rows: Vec<_> = runs
        .iter()
        .map(|run| [run.run_id.to_string(), minute(run.created_at), outcome(run), shortened(&run.prompt, 60)])
        .collect();
    table::lines(["RUN", "CREATED (UTC)", "OUTCOME", "TASK"], &rows)
}

/// Everything about one run.
pub(crate) fn page(detail: &RunDetail) -> Vec<String> {
    let run = &detail.run;
    let mut lines = vec![
        format!("run        {}", run.run_id),
        format!("session    {}", run.session_id),
        format!("phase      {}", outcome(run)),
    ];
    lines.extend(told(run).map(|detail| format!("reason     {}", why(detail))));
    lines.push(format!("workspace  {}", shortened(&run.workspace, 300)));
    lines.push(format!("model      {}", shortened(&run.model, 100)));
    lines.push(format!("mode       {}", detail.mode));
    if let Some(RunAgentView { agent_id, version: Some(version) }) = &detail.agent {
        lines.push(format!("agent      {}, version {version}", shortened(agent_id, 100)));
    }
    let intents = intents::lines(&detail.envelope).into_iter();
    lines.extend(intents.map(|line| line.replacen("intends: ", "intends    ", 1)));
    lines.push(format!("created    {} UTC", instant(run.created_at)));
    if let Some(ended) = run.ended_at {
        lines.push(format!("ended      {} UTC", instant(ended)));
    }
    lines.push(format!("time       {}", timings(&spent(detail))));
    if let Some(usage) = usage(&detail.usage) {
        lines.push(format!("usage      {usage}"));
    }
    lines.push(format!(
        "work       {}, {}, {} events",
        counted(run.turns as usize, "turn"),
        counted(run.tool_calls as usize, "tool call"),
        run.last_seq
    ));
    lines.push(String::new());
    lines.push("task".to_owned());
    lines.extend(indented(&run.prompt));
    if let Some(answer) = &detail.answer {
        lines.push("answer".to_owned());
        lines.extend(indented(answer));
    }
    if !detail.plan.is_empty() {
        lines.push("plan".to_owned());
        lines.extend(plan::lines(&detail.plan));
    }
    if !detail.changes.is_empty() {
        lines.push("files changed".to_owned());
        let lined = |change: &FileChangeView| format!("{}{}", changed(change), certainty(change.attribution));
        lines.extend(detail.changes.iter().map(lined));
    }
    if !detail.not_run.is_empty() {
        lines.push("calls not made".to_owned());
        lines.extend(detail.not_run.iter().map(|call| format!("  ✗ {}", calls::not_run(call))));
    }
    if !detail.reduced_isolation.is_empty() {
        lines.push("less isolation than asked for".to_owned());
        lines.extend(detail.reduced_isolation.iter().map(|call| format!("  {}", calls::reduced_isolation(call))));
    }
    if !detail.unavailable_tools.is_empty() {
        lines.push("tools not available".to_owned());
        let lined = |missing: &UnavailableToolsView| format!("  {}: {}", missing.source, missing.reason);
        lines.extend(detail.unavailable_tools.iter().map(lined));
    }
    for approval in &detail.pending_approvals {
        lines.push(format!("needs an answer: {}", shortened(&approval.summary, 300)));
        if !approval.reason.is_empty() {
            lines.push(format!("  why: {}", shortened(&approval.reason, 300)));
        }
        lines.extend(evidence::lines(&approval.evidence, Extent::Glance).into_iter().map(|line| format!("  {line}")));
        lines.push(format!("  palyra approvals show {}", approval.approval_id));
        lines.push(format!("  palyra approvals decide {} allow", approval.approval_id));
        lines.push(format!("  palyra approvals decide {} deny", approval.approval_id));
    }
    lines
}

fn indented(text: &str) -> Vec<String> {
    plain(text).lines().map(|line| format!("  {line}")).collect()
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
