//! One line about a tool call: what it is about and how it went.

use std::collections::BTreeSet;
use std::time::Duration;

use palyra_client::api::{CallNotRunView, ReducedIsolationView};
use palyra_common::{SandboxTier, StableErrorEnvelope, ToolResult, command_line};
use serde_json::Value;

use super::text::{duration, shortened};

/// Arguments that say what a call is about, the most telling first.
const TELLING: &[&str] = &["pattern", "query", "path", "command", "url", "destination", "digest", "text"];
const WIDTH: usize = 72;
/// Longest reason that is shown.
const REASON: usize = 240;

/// What a call is about, from its arguments.
pub(crate) fn subject(arguments: &Value) -> String {
    if let Some(patch) = arguments.get("patch").and_then(Value::as_str) {
        return shortened(&patched_files(patch).join(" "), WIDTH);
    }
    let argv: Option<Vec<&str>> =
        arguments.get("argv").and_then(Value::as_array).map(|argv| argv.iter().filter_map(Value::as_str).collect());
    if let Some(argv) = argv {
        return shortened(&command_line(argv), WIDTH);
    }
    let parts: Vec<String> = TELLING
        .iter()
        .filter_map(|name| arguments.get(*name))
        .filter_map(|value| match value {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
        .take(2)
        .collect();
    shortened(&parts.join(" in "), WIDTH)
}

/// The files that a patch names, in either of the two formats.
fn patched_files(patch: &str) -> Vec<&str> {
    const MARKS: &[&str] =
        &["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/", "--- a/"];
    let mut seen = BTreeSet::new();
    patch
        .lines()
        .filter_map(|line| MARKS.iter().find_map(|mark| line.strip_prefix(mark)))
        .map(str::trim)
        .filter(|file| seen.insert(*file))
        .collect()
}

/// `• palyra.fs.read notes.md … 12 ms`, `✗ … failed: why`, or `✗ … refused: why`.
pub(crate) fn line(result: &ToolResult, subject: &str, took: Option<Duration>) -> String {
    let mut line = format!("{} {}", if result.ok { '•' } else { '✗' }, shortened(&result.tool, WIDTH));
    if !subject.is_empty() {
        line.push_str(&format!(" {subject}"));
    }
    let ran = result.error.as_ref().is_none_or(|error| !is_not_run(error));
    if let Some(took) = took.filter(|_| ran) {
        line.push_str(&format!(" … {}", duration(took)));
    }
    let remark = if result.ok { fallback(result).map(|text| shortened(text, REASON)) } else { Some(failure(result)) };
    if let Some(remark) = remark {
        line.push_str(&format!(" {remark}"));
    }
    line
}

/// What the result of a program says of the tier that it got instead of the one asked for; a failure says it in its reason.
fn fallback(result: &ToolResult) -> Option<&str> {
    let first = result.content.lines().next().filter(|_| result.tool.starts_with("palyra.process."))?;
    first.rfind("(in tier ").and_then(|at| first.get(at..))
}

/// How a call went, for a tape: `refused: …`, `failed: …` or what it gave.
pub(crate) fn outcome(result: &ToolResult) -> String {
    if result.ok { format!("gave {}", result.content) } else { failure(result) }
}

/// A call that was not made, and why: `palyra.fs.write notes.md refused: hook `no-writes``.
pub(crate) fn not_run(call: &CallNotRunView) -> String {
    let subject = call.arguments.as_ref().map(subject).filter(|subject| !subject.is_empty());
    let subject = subject.map(|subject| format!(" {subject}")).unwrap_or_default();
    format!("{}{subject} {}", shortened(&call.tool, WIDTH), why_not(&call.error))
}

/// A call whose program ran in a weaker tier, and why: `palyra.process.run make in tier B because tier C is not available: …`.
pub(crate) fn reduced_isolation(call: &ReducedIsolationView) -> String {
    let subject = call.arguments.as_ref().map(subject).filter(|subject| !subject.is_empty());
    let subject = subject.map(|subject| format!(" {subject}")).unwrap_or_default();
    format!("{}{subject} {}", shortened(&call.tool, WIDTH), in_tier(call.tier, &call.reasons))
}

/// Which tier was used instead of the one asked for.
pub(crate) fn in_tier(tier: SandboxTier, reasons: &[String]) -> String {
    shortened(&format!("in tier {tier} because tier C is not available: {}", reasons.join("; ")), REASON)
}

fn failure(result: &ToolResult) -> String {
    match &result.error {
        Some(error) => why_not(error),
        None => format!("failed: {}", shortened(how_it_ended(&result.content), REASON)),
    }
}

/// The line that says how a program ended, without its name, which stands beside it. What it printed is for the answer and the tape.
fn how_it_ended(content: &str) -> &str {
    let first = content.lines().next().unwrap_or_default();
    first.rsplit_once("`: ").filter(|_| first.starts_with('`')).map_or(first, |(_, ended)| ended)
}

fn why_not(error: &StableErrorEnvelope) -> String {
    let (message, code) = (shortened(&error.message, REASON), &error.code);
    if is_refused(error) {
        // The message may be a hook's own and is never empty for Palyra's.
        let message = if message.is_empty() { code.clone() } else { message };
        return format!("refused: {message}");
    }
    if is_not_run(error) {
        return format!("not run: {}", message.strip_prefix("not run: ").unwrap_or(&message));
    }
    format!("failed: {message} [{code}]")
}

/// Somebody or something refused the call: a policy, the agent's rules, a hook, a person.
fn is_refused(error: &StableErrorEnvelope) -> bool {
    matches!(error.code.as_str(), "denied" | "hook_blocked" | "approval_denied")
}

/// The call was never begun.
fn is_not_run(error: &StableErrorEnvelope) -> bool {
    let given_up = ["hook_failed_run", "approval_timeout", "approval_error", "interrupted", "run_ending"];
    is_refused(error) || given_up.contains(&error.code.as_str())
}

#[cfg(test)]
mod tests {
    use palyra_common::{Confidentiality, ErrorCategory, Integrity, Label, StableErrorEnvelope};
    use serde_json::json;

    use super::*;

    fn result(error: Option<StableErrorEnvelope>) -> ToolResult {
        ToolResult {
            call_id: "1".to_owned(),
            tool: "palyra.fs.read".to_owned(),
            ok: error.is_none(),
            content: "hello".to_owned(),
            truncated: false,
            artifact: None,
            error,
            label: Label::new(Integrity::ToolTrusted, Confidentiality::Private),
        }
    }

    #[test]
    fn a_call_is_told_by_its_arguments() {
        assert_eq!(subject(&json!({ "path": "notes.md", "limit": 3 })), "notes.md");
        assert_eq!(subject(&json!({ "path": "src", "pattern": "TODO" })), "TODO in src");
        assert_eq!(subject(&json!({ "argv": ["grep", "-n", "two words", "src"] })), "grep -n 'two words' src");
        assert_eq!(subject(&json!({ "argv": ["echo", "it's", ""] })), r"echo 'it'\''s' ''");
        assert_eq!(subject(&json!({})), "");
        assert_eq!(subject(&json!("odd")), "");
        assert_eq!(subject(&json!({ "argv": ["grep", "a b", "x"], "cwd": "src" })), "grep 'a b' x");
        assert_eq!(subject(&json!({ "path": "a\u{1b}[31m\nb" })), "a\u{fffd}[31m b");
        let patch = "*** Begin Patch\n*** Update File: a.md\n@@\n-x\n+y\n*** Add File: b.md\n+z\n*** End Patch";
        assert_eq!(subject(&json!({ "patch": patch })), "a.md b.md");
        assert_eq!(subject(&json!({ "patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" })), "x");
    }

    #[test]
    fn a_line_says_how_it_went() {
        let took = Some(Duration::from_millis(12));
        assert_eq!(line(&result(None), "notes.md", took), "• palyra.fs.read notes.md … 12 ms");
        let error = StableErrorEnvelope::new("path_not_found", ErrorCategory::NotFound, "`x` does not exist");
        assert_eq!(
            line(&result(Some(error)), "x", None),
            "✗ palyra.fs.read x failed: `x` does not exist [path_not_found]"
        );
        let exited = ToolResult {
            ok: false,
            content: "`false`: exit code 1 after 0.0 s\n--- stderr (3 bytes)\nno\n".to_owned(),
            ..result(None)
        };
        assert_eq!(line(&exited, "false", took), "✗ palyra.fs.read false … 12 ms failed: exit code 1 after 0.0 s");
    }

    #[test]
    fn a_program_that_ran_with_less_isolation_than_asked_for_says_so() {
        let took = Some(Duration::from_millis(12));
        let content = "`true`: exit code 0 after 0.0 s (in tier B because tier C is not available: no Landlock)\n";
        let ran = ToolResult { tool: "palyra.process.run".to_owned(), content: content.to_owned(), ..result(None) };
        assert_eq!(
            line(&ran, "true", took),
            "• palyra.process.run true … 12 ms (in tier B because tier C is not available: no Landlock)"
        );
        let read = ToolResult { content: content.to_owned(), ..result(None) };
        assert_eq!(line(&read, "notes.md", took), "• palyra.fs.read notes.md … 12 ms");
    }

    #[test]
    fn a_call_that_was_not_made_is_not_shown_as_made() {
        let took = Some(Duration::from_millis(12));
        let refused = |code: &str, message: &str| StableErrorEnvelope::new(code, ErrorCategory::Policy, message);
        for (error, expected) in [
            (refused("hook_blocked", "hook `quiet`: no writes"), "✗ palyra.fs.read a refused: hook `quiet`: no writes"),
            (
                refused("denied", "the agent `x` does not have it"),
                "✗ palyra.fs.read a refused: the agent `x` does not have it",
            ),
            (refused("approval_denied", "a person refused it"), "✗ palyra.fs.read a refused: a person refused it"),
            (refused("run_ending", "not run: the run is ending"), "✗ palyra.fs.read a not run: the run is ending"),
        ] {
            assert_eq!(line(&result(Some(error.clone())), "a", took), expected);
            let view = CallNotRunView {
                call_id: "t1c1".to_owned(),
                tool: "palyra.fs.read".to_owned(),
                arguments: Some(json!({ "path": "a" })),
                error,
            };
            assert_eq!(format!("✗ {}", not_run(&view)), expected);
        }
    }
}
