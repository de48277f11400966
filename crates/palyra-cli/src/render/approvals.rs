//! Approvals and agreed patterns as text: one line each in lists, a page for one.

use palyra_client::api::{ApprovalView, PatternView};
use palyra_common::{ApprovalDecision, ApprovalScope};

use super::evidence::{self, Extent};
use super::question::{about_step, agreed, arguments, in_its_own_words};
use super::table;
use super::text::{counted, instant, shortened, visible};

/// Approvals as a table. The value that steers the effect has a column of its own: it is what an answer turns on.
pub(crate) fn list(approvals: &[ApprovalView]) -> Vec<String> {
    let rows: Vec<_> = approvals
        .iter()
        .map(|approval| {
            [
                approval.approval_id.to_string(),
                instant(approval.requested_at),
                approval.risk.to_string(),
                state(approval),
                value_to_check(approval),
                shortened(&approval.summary, 60),
            ]
        })
        .collect();
    table::lines(["APPROVAL", "ASKED (UTC)", "RISK", "ANSWER", "VALUES TO CHECK", "QUESTION"], &rows)
}

/// The first steering value, and how many more there are.
fn value_to_check(approval: &ApprovalView) -> String {
    match approval.evidence.as_slice() {
        [] => "-".to_owned(),
        [first, rest @ ..] => {
            let value = evidence::cell(&first.value, 34);
            if rest.is_empty() { value } else { format!("{value} and {} more", rest.len()) }
        }
    }
}

/// `pending`, `allow by me`, `withdrawn`.
fn state(approval: &ApprovalView) -> String {
    match (&approval.answer, approval.withdrawn_at) {
        (Some(answer), _) => format!("{} by {}", decided(answer.decision, answer.scope), shortened(&answer.by, 30)),
        (None, Some(_)) => "withdrawn".to_owned(),
        (None, None) => "pending".to_owned(),
    }
}

/// `allow`, `allow (session)`, `deny`: a refusal is always about one call.
pub(crate) fn decided(decision: ApprovalDecision, scope: ApprovalScope) -> String {
    match (decision, scope) {
        (ApprovalDecision::Allow, ApprovalScope::Session | ApprovalScope::Timeboxed) => format!("{decision} ({scope})"),
        _ => decision.to_string(),
    }
}

/// One line about an approval that is no longer open.
pub(crate) fn closed(approval: &ApprovalView) -> String {
    format!("{}  {}  {}", approval.approval_id, state(approval), shortened(&approval.summary, 100))
}

/// Everything about one approval, nothing shortened that an answer could turn on.
pub(crate) fn page(approval: &ApprovalView, pattern: Option<&PatternView>) -> Vec<String> {
    let line = |text: &str| visible(text).replace(['\n', '\t'], " ");
    let mut lines =
        vec![format!("approval   {}", approval.approval_id), format!("question   {}", line(&approval.summary))];
    if let Some(client) = &approval.asked_by {
        lines.push(format!("           {}", in_its_own_words(client)));
    }
    lines.extend([
        format!("risk       {}", approval.risk),
        format!("why        {}", line(&approval.reason)),
        format!("subject    {}", approval.subject),
    ]);
    match (approval.run_id, &approval.call_id) {
        (Some(run_id), Some(call)) => lines.push(format!("run        {run_id}, call {}", shortened(call, 60))),
        (Some(run_id), None) => lines.push(format!("run        {run_id}")),
        (None, _) => {}
    }
    if let Some(session_id) = approval.session_id {
        lines.push(format!("session    {session_id}"));
    }
    let lapses = approval.expires_at.map(|end| format!(", expires {} UTC", instant(end))).unwrap_or_default();
    lines.push(format!("asked      {} UTC{lapses}", instant(approval.requested_at)));
    match (&approval.answer, approval.withdrawn_at) {
        (Some(answer), _) => lines.push(format!(
            "answer     {} by {}{} at {} UTC",
            decided(answer.decision, answer.scope),
            line(&answer.by),
            answer.via.as_ref().map(|via| format!(" ({})", line(via))).unwrap_or_default(),
            instant(answer.at)
        )),
        (None, Some(at)) => {
            lines.push(format!("answer     none; the run withdrew the question at {} UTC", instant(at)));
        }
        (None, None) => lines.push("answer     none yet".to_owned()),
    }
    if let Some(pattern) = pattern {
        lines.push(format!("allowed    {}{}", agreed(&pattern.sentence), revoked(pattern)));
    }
    lines.push(String::new());
    if !approval.evidence.is_empty() {
        let count = counted(approval.evidence.len(), "value");
        lines.push(format!("{count} to check"));
        lines.extend(indented(evidence::lines(&approval.evidence, Extent::Whole)));
    }
    if let Some(whole) = about_step(approval.tool.as_deref(), approval.arguments.as_ref()) {
        lines.extend(whole);
    } else if let Some(tool) = &approval.tool {
        lines.push(format!("{} with", line(tool)));
        lines.extend(indented(arguments(approval.arguments.as_ref())));
    } else if approval.arguments.is_some() {
        lines.push("details".to_owned());
        lines.extend(indented(arguments(approval.arguments.as_ref())));
    }
    if approval.answer.is_none() && approval.withdrawn_at.is_none() {
        lines.extend(ways_to_answer(approval));
    }
    lines
}

fn ways_to_answer(approval: &ApprovalView) -> Vec<String> {
    let id = approval.approval_id;
    let mut lines = Vec::new();
    if let Some(offer) = &approval.offer {
        lines.push("to stop being asked, allow".to_owned());
        lines.push(format!("  {}", agreed(offer)));
    }
    lines.push("answer with".to_owned());
    let mut way = |answer: &str, what: &str| {
        lines.push(format!("  palyra approvals decide {id} {answer:<23}  {what}"));
    };
    // A question about a step of the run says itself what refusing it means.
    let step = about_step(approval.tool.as_deref(), approval.arguments.as_ref()).is_some();
    way("allow", if step { "agree" } else { "this call" });
    if approval.offer.is_some() {
        way("allow --scope session", "and calls like it in this session");
        way("allow --scope timeboxed", "and calls like it for an hour, in all your sessions");
    }
    way("deny", if step { "refuse" } else { "not this call" });
    lines
}

/// Agreed patterns: each with what it covers, whole, and what becomes of it.
pub(crate) fn patterns(patterns: &[PatternView]) -> Vec<String> {
    patterns
        .iter()
        .flat_map(|pattern| {
            [
                format!("{}  {}", pattern.approval_id, agreed(&pattern.sentence)),
                format!(
                    "  allowed by {} at {} UTC in session {}{}",
                    shortened(&pattern.by, 60),
                    instant(pattern.at),
                    pattern.session_id,
                    revoked(pattern)
                ),
            ]
        })
        .collect()
}

fn revoked(pattern: &PatternView) -> String {
    pattern.revoked_at.map(|at| format!("; revoked at {} UTC", instant(at))).unwrap_or_default()
}

/// What is said when something was agreed to for longer than once.
pub(crate) fn agreed_to(pattern: &PatternView) -> Vec<String> {
    vec![
        format!("allowed: {}", agreed(&pattern.sentence)),
        format!("  to revoke it: palyra approvals revoke {}", pattern.approval_id),
    ]
}

fn indented(lines: Vec<String>) -> impl Iterator<Item = String> {
    lines.into_iter().map(|line| format!("  {line}"))
}

#[cfg(test)]
#[path = "approvals_tests.rs"]
pub(super) mod tests;
