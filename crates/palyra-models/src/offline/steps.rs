//! What each request needs: the next tool call, or its outcome, worked out from the results so far.
//!
//! A step is a pure function of its request and of the results of its own calls. Edits read the file first and build a real
//! patch from what was read, so a file that somebody changes in between is refused by the patch tool and not overwritten.

use diffy::DiffOptions;
use serde_json::{Value, json};

use super::request::{Depth, Request};
use super::summary;
use crate::message::ToolSpec;

/// Levels shown when nothing is said, and when everything is asked for.
const FLAT_DEPTH: u64 = 1;
const RECURSIVE_DEPTH: u64 = 32;
/// Lines of a result that the answer repeats.
const SHOWN_LINES: usize = 40;

/// Notes in a result that is not the whole file: the reader's own, and that of a result shortened to fit the window.
const CONTINUES: &str = "bytes shown; continue with";
const LEFT_OUT: &str = "bytes left out here";
/// What an empty file looks like.
const EMPTY_FILE: &str = "[the file is empty]";

/// The result of one finished call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finished<'a> {
    pub(super) content: &'a str,
    pub(super) failed: bool,
}

/// What comes next for a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    /// This call.
    Call {
        /// The tool.
        tool: &'static str,
        /// Its arguments.
        arguments: Value,
        /// What it is for, for the person who watches.
        aim: String,
    },
    /// Nothing: the step has ended.
    Done(Outcome),
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    /// One line.
    pub(super) headline: String,
    /// What was found, if anything is to be shown.
    pub(super) body: String,
}

/// Whether a step did what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    Failed,
    Skipped,
}

impl Outcome {
    pub(super) fn failed(headline: String) -> Self {
        Self { verdict: Verdict::Failed, headline, body: String::new() }
    }

    pub(super) fn skipped(headline: String) -> Self {
        Self { verdict: Verdict::Skipped, headline, body: String::new() }
    }

    fn done(headline: String, body: String) -> Self {
        Self { verdict: Verdict::Done, headline, body }
    }
}

/// The next thing for a request, given the results of the calls already made for it.
pub(super) fn next(request: &Request, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    match request {
        Request::List { directory, depth } => {
            let place = directory.as_deref().unwrap_or(".");
            let levels = match depth {
                Depth::Flat => FLAT_DEPTH,
                Depth::Recursive => RECURSIVE_DEPTH,
            };
            let call =
                Call::new("palyra.fs.list", json!({ "path": place, "depth": levels }), format!("list `{place}`"));
            single(call, results, tools, |found| (format!("listed `{place}`"), shortened(found)))
        }
        Request::Read { path } => single(read(path), results, tools, |found| {
            (format!("read `{path}` ({})", summary::counts(text_of(found))), shortened(found))
        }),
        Request::Summarise { path } => single(read(path), results, tools, |found| {
            let text = text_of(found);
            let part = if is_cut(found) { ", from its beginning" } else { "" };
            (format!("summarised `{path}` ({}{part})", summary::counts(text)), summary::of_file(text))
        }),
        Request::Search { text, directory } => {
            let place = directory.as_deref().unwrap_or(".");
            let arguments = json!({ "pattern": text, "literal": true, "path": place });
            let call = Call::new("palyra.fs.search", arguments, format!("search `{place}` for `{text}`"));
            single(call, results, tools, |found| (format!("searched `{place}` for `{text}`"), shortened(found)))
        }
        Request::Write { path, text } => {
            let arguments = json!({ "path": path, "content": with_line_end(text) });
            let call = Call::new("palyra.fs.write", arguments, format!("write `{path}`"));
            single(call, results, tools, |found| (format!("wrote `{path}`"), found.to_owned()))
        }
        Request::Delete { path } => {
            let patch = format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n");
            if path.contains(['\n', '\r']) {
                return Next::Done(Outcome::failed("cannot delete a file whose name has a line break".to_owned()));
            }
            let call = Call::new("palyra.fs.apply_patch", json!({ "patch": patch }), format!("delete `{path}`"));
            single(call, results, tools, |found| (format!("deleted `{path}`"), found.to_owned()))
        }
        Request::Append { path, text } => append(path, text, results, tools),
        Request::Replace { old, new, path } => replace(path, old, new, results, tools),
        Request::Run { command } => {
            let arguments = fitting("palyra.process.run", &["argv", "command"], command, tools);
            let call = Call::new("palyra.process.run", arguments, format!("run `{command}`"));
            single(call, results, tools, |found| (format!("ran `{command}`"), shortened(found)))
        }
        Request::Remember { fact } => {
            let arguments = fitting("palyra.memory.retain", &["content", "text", "fact"], fact, tools);
            let call = Call::new("palyra.memory.retain", arguments, "remember that".to_owned());
            single(call, results, tools, |_| (format!("remembered `{fact}`"), String::new()))
        }
        Request::Recall { about } => {
            let query = about.as_deref().unwrap_or("*");
            let arguments = fitting("palyra.memory.recall", &["query", "text"], query, tools);
            let call = Call::new("palyra.memory.recall", arguments, "look into the memory".to_owned());
            single(call, results, tools, |found| ("looked into the memory".to_owned(), shortened(found)))
        }
        Request::Time => {
            let call = Call::new("palyra.time.now", json!({}), "look at the clock".to_owned());
            single(call, results, tools, |found| ("looked at the clock".to_owned(), found.trim().to_owned()))
        }
        Request::Help => {
            Next::Done(Outcome::done("this is what I can do".to_owned(), super::answer::ABILITIES.to_owned()))
        }
        Request::Unknown(words) => Next::Done(Outcome::failed(format!("did not understand `{words}`"))),
    }
}

/// A call before it is made.
struct Call {
    tool: &'static str,
    arguments: Value,
    aim: String,
}

impl Call {
    fn new(tool: &'static str, arguments: Value, aim: String) -> Self {
        Self { tool, arguments, aim }
    }

    /// The call, or why it cannot be made here.
    fn or_unavailable(self, tools: &[ToolSpec]) -> Next {
        if tools.iter().any(|tool| tool.name == self.tool) {
            return Next::Call { tool: self.tool, arguments: self.arguments, aim: self.aim };
        }
        let headline = format!("cannot {}: the tool `{}` is not available here", self.aim, self.tool);
        Next::Done(Outcome::failed(headline))
    }
}

fn read(path: &str) -> Call {
    Call::new("palyra.fs.read", json!({ "path": path }), format!("read `{path}`"))
}

/// A step of one call.
fn single(
    call: Call,
    results: &[Finished<'_>],
    tools: &[ToolSpec],
    report: impl FnOnce(&str) -> (String, String),
) -> Next {
    match results {
        [] => call.or_unavailable(tools),
        [result, ..] if result.failed => Next::Done(refused(&call.aim, result)),
        [result, ..] => {
            let (headline, body) = report(result.content);
            Next::Done(Outcome::done(headline, body))
        }
    }
}

fn refused(aim: &str, result: &Finished<'_>) -> Outcome {
    let why = result.content.trim();
    let why = why.strip_prefix("error:").unwrap_or(why).trim();
    Outcome::failed(format!("could not {aim}: {why}"))
}

fn append(path: &str, text: &str, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let aim = format!("append to `{path}`");
    match results {
        [] => read(path).or_unavailable(tools),
        [before] if before.failed => Next::Done(refused(&aim, before)),
        [before] => match whole(path, before.content) {
            Err(outcome) => Next::Done(outcome),
            Ok(old) => {
                let joint = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
                patch(path, old, &format!("{old}{joint}{}", with_line_end(text)), aim).or_unavailable(tools)
            }
        },
        [_, result, ..] if result.failed => Next::Done(refused(&aim, result)),
        [_, result, ..] => Next::Done(Outcome::done(format!("appended to `{path}`"), result.content.to_owned())),
    }
}

fn replace(path: &str, old: &str, new: &str, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let aim = format!("replace `{old}` with `{new}` in `{path}`");
    match results {
        [] => read(path).or_unavailable(tools),
        [before] if before.failed => Next::Done(refused(&aim, before)),
        [before] => match whole(path, before.content) {
            Err(outcome) => Next::Done(outcome),
            Ok(text) if !text.contains(old) => {
                Next::Done(Outcome::failed(format!("could not {aim}: `{old}` does not occur there")))
            }
            Ok(_) if old == new => Next::Done(Outcome::done(format!("left `{path}` as it is"), String::new())),
            Ok(text) => patch(path, text, &text.replace(old, new), aim).or_unavailable(tools),
        },
        [_, result, ..] if result.failed => Next::Done(refused(&aim, result)),
        [before, result, ..] => {
            let count = before.content.matches(old).count();
            let places = if count == 1 { "place" } else { "places" };
            let headline = format!("replaced `{old}` with `{new}` in `{path}` ({count} {places})");
            Next::Done(Outcome::done(headline, result.content.to_owned()))
        }
    }
}

fn patch(path: &str, old: &str, new: &str, aim: String) -> Call {
    let mut options = DiffOptions::new();
    options.set_original_filename(format!("a/{path}")).set_modified_filename(format!("b/{path}"));
    let patch = options.create_patch(old, new).to_string();
    Call::new("palyra.fs.apply_patch", json!({ "patch": patch }), aim)
}

/// The text of a file that was shown whole.
fn whole<'a>(path: &str, shown: &'a str) -> Result<&'a str, Outcome> {
    if is_cut(shown) {
        return Err(Outcome::failed(format!("cannot edit `{path}`: it is too large to be read in one piece")));
    }
    Ok(text_of(shown))
}

fn text_of(shown: &str) -> &str {
    if shown == EMPTY_FILE { "" } else { shown }
}

fn is_cut(shown: &str) -> bool {
    let ends_early = shown.lines().next_back().is_some_and(|line| line.starts_with('[') && line.contains(CONTINUES));
    ends_early || shown.lines().any(|line| line.starts_with("[…") && line.contains(LEFT_OUT))
}

/// Text files end with a line end.
fn with_line_end(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// Arguments for a tool whose exact schema may differ: the first candidate that it knows, as text or as a list of words.
fn fitting(tool: &str, candidates: &[&str], value: &str, tools: &[ToolSpec]) -> Value {
    let properties = tools.iter().find(|spec| spec.name == tool).and_then(|spec| spec.input_schema.get("properties"));
    let known = candidates.iter().find(|name| properties.is_some_and(|properties| properties.get(name).is_some()));
    let name = known.or(candidates.first()).copied().unwrap_or_default();
    let kind = properties.and_then(|properties| properties.get(name)?.get("type")?.as_str());
    let value = if kind == Some("array") { Value::from(words(value)) } else { Value::from(value) };
    json!({ name: value })
}

/// A command as the list that a shell would make of it; one with an open quote is only split at spaces.
fn words(command: &str) -> Vec<String> {
    shlex::split(command).unwrap_or_else(|| command.split_whitespace().map(str::to_owned).collect())
}

/// The beginning of a result, for the answer.
fn shortened(text: &str) -> String {
    let mut lines = text.trim_end().lines();
    let mut shown: Vec<&str> = lines.by_ref().take(SHOWN_LINES).collect();
    let rest = lines.count();
    let note = format!("… and {rest} more lines");
    if rest > 0 {
        shown.push(&note);
    }
    shown.join("\n")
}
