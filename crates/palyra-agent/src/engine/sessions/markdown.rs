//! An exported session as Markdown.
//!
//! INVARIANT: contents never become structure. A text of several lines stands in a fenced block whose fence is longer than any run of backticks in it; a text of one line
//! stands in a code span with the same rule. So whatever a model, a tool or a web page wrote, headings and lists of the document are ours.

use std::fmt::Write as _;

use super::export::SessionExport;
use super::export_run::{ApprovalExport, CallExport, RunExport};

/// The document.
pub(super) fn render(session: &SessionExport) -> String {
    let mut out = String::new();
    heading(&mut out, 1, &format!("Session {}", code(&session.title)));
    item(&mut out, "id", &code(&session.session_id.to_string()));
    item(&mut out, "owner", &code(&session.owner));
    optional(&mut out, "key", session.key.as_deref());
    item(&mut out, "created", &session.created_at.to_rfc3339());
    item(&mut out, "updated", &session.updated_at.to_rfc3339());
    if let Some(at) = session.archived_at {
        item(&mut out, "archived", &at.to_rfc3339());
    }
    optional(&mut out, "mode", session.mode.map(|mode| mode.as_str()));
    optional(&mut out, "model", session.settings.model.as_deref());
    optional(&mut out, "workspace", session.settings.workspace.as_deref());
    optional(&mut out, "agent", session.settings.agent.as_deref());
    if let Some(from) = session.forked_from {
        let run = from.run_id.map(|run| format!(", run `{run}`")).unwrap_or_default();
        let seq = from.seq.map(|seq| format!(", event {seq}")).unwrap_or_default();
        item(&mut out, "forked from", &format!("session `{}`{run}{seq}", from.session_id));
    }
    if let Some(summary) = &session.compaction {
        heading(&mut out, 2, &format!("Summary of {} exchange(s)", summary.replaces));
        block(&mut out, "text", &summary.asked);
        block(&mut out, "text", &summary.answered);
    }
    for (number, exchange) in (1..).zip(&session.inherited) {
        heading(&mut out, 2, &format!("Inherited exchange {number}"));
        heading(&mut out, 3, "Asked");
        block(&mut out, "text", &exchange.prompt);
        heading(&mut out, 3, "Answered");
        block(&mut out, "text", &exchange.answer);
    }
    for (number, run) in (1..).zip(&session.runs) {
        render_run(&mut out, number, run);
    }
    out
}

fn render_run(out: &mut String, number: u32, run: &RunExport) {
    heading(out, 2, &format!("Run {number}"));
    item(out, "id", &code(&run.run_id.to_string()));
    item(out, "owner", &code(&run.owner));
    item(out, "model", &code(&run.model));
    item(out, "workspace", &code(&run.workspace));
    item(out, "created", &run.created_at.to_rfc3339());
    let reason = run.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    item(out, "phase", &format!("{}{reason}", run.phase));
    if let Some(detail) = &run.detail {
        item(out, "detail", &format!("{}: {}", code(&detail.code), code(&detail.message)));
    }
    optional(out, "undone by", run.undone_by.as_deref());
    heading(out, 3, "Asked");
    block(out, "text", &run.prompt);
    for message in &run.messages {
        heading(out, 3, "Sent while it was running");
        block(out, "text", message);
    }
    for call in &run.calls {
        render_call(out, call);
    }
    for approval in &run.approvals {
        render_approval(out, approval);
    }
    if !run.changes.is_empty() {
        heading(out, 3, "Files changed");
        for change in &run.changes {
            let what = match (change.before, change.after) {
                (None, _) => "created",
                (_, None) => "deleted",
                _ => "changed",
            };
            item(out, what, &code(&change.path));
        }
    }
    if let Some(answer) = &run.answer {
        heading(out, 3, "Answered");
        block(out, "text", answer);
    }
}

fn render_call(out: &mut String, call: &CallExport) {
    heading(out, 3, &format!("Call {} {}", code(&call.call_id), code(&call.tool)));
    if let Some(verdict) = call.verdict {
        item(out, "decided", verdict.as_str());
    }
    for reason in &call.reasons {
        item(out, "because", &code(reason));
    }
    for policy in &call.policies {
        item(out, "policy", &code(policy));
    }
    let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
    block(out, "json", &arguments);
    match &call.outcome {
        None => item(out, "outcome", "it did not run"),
        Some(outcome) => {
            item(out, "executed by", &code(&outcome.executor));
            if let Some(error) = &outcome.error {
                item(out, "error", &code(&error.code));
            }
            block(out, "text", &outcome.content);
        }
    }
}

fn render_approval(out: &mut String, approval: &ApprovalExport) {
    heading(out, 3, &format!("Approval for {}", code(&approval.call_id)));
    item(out, "asked", &code(&approval.summary));
    item(out, "because", &code(&approval.reason));
    match (approval.decision, &approval.by) {
        (Some(decision), Some(by)) => item(out, "answered", &format!("{decision} by {}", code(by))),
        _ if approval.closed_at.is_some() => item(out, "answered", "nobody; it was withdrawn"),
        _ => item(out, "answered", "not yet"),
    }
}

fn heading(out: &mut String, level: usize, text: &str) {
    let gap = if out.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{gap}{} {text}\n", "#".repeat(level));
}

fn item(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "- {name}: {value}");
}

fn optional(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        item(out, name, &code(value));
    }
}

/// A block that its text cannot leave.
fn block(out: &mut String, language: &str, text: &str) {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    // Other control characters than line breaks and tabs have no place in a document, and some move the cursor of whoever prints it.
    let text: String = text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
    let _ = writeln!(out, "\n{fence}{language}\n{text}{end}{fence}\n");
}

/// A code span that its text cannot leave, in one line.
fn code(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let ticks = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
