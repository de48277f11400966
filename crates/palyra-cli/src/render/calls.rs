//! One line about a tool call: what it is about and how it went.

use std::collections::BTreeSet;
use std::time::Duration;

use palyra_common::ToolResult;
use serde_json::Value;

use super::text::{duration, shortened};

/// Arguments that say what a call is about, the most telling first.
const TELLING: &[&str] = &["pattern", "query", "path", "command", "url", "destination", "digest", "text"];
const WIDTH: usize = 72;

/// What a call is about, from its arguments.
pub(crate) fn subject(arguments: &Value) -> String {
    if let Some(patch) = arguments.get("patch").and_then(Value::as_str) {
        return shortened(&patched_files(patch).join(" "), WIDTH);
    }
    if let Some(argv) = arguments.get("argv").and_then(Value::as_array) {
        return shortened(&command(argv), WIDTH);
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

/// A program with its arguments as a shell would take them.
fn command(argv: &[Value]) -> String {
    let words = argv.iter().filter_map(Value::as_str).map(|word| {
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
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

/// `• palyra.fs.read notes.md … 12 ms`, or `✗ … : why`.
pub(crate) fn line(result: &ToolResult, subject: &str, took: Option<Duration>) -> String {
    let mut line = format!("{} {}", if result.ok { '•' } else { '✗' }, shortened(&result.tool, WIDTH));
    if !subject.is_empty() {
        line.push_str(&format!(" {subject}"));
    }
    if let Some(took) = took {
        line.push_str(&format!(" … {}", duration(took)));
    }
    if !result.ok {
        let why = result.error.as_ref().map_or_else(
            || shortened(&result.content, 160),
            |error| format!("{} [{}]", shortened(&error.message, 160), error.code),
        );
        line.push_str(&format!(": {why}"));
    }
    line
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
        assert_eq!(line(&result(Some(error)), "x", None), "✗ palyra.fs.read x: `x` does not exist [path_not_found]");
    }
}
