//! What each request needs: the next tool call, or its outcome, worked out from the results so far.
//!
//! A step is a pure function of its request and of the results of its own calls. Edits read the file first and build a real
//! patch from what was read, so a file that somebody changes in between is refused by the patch tool and not overwritten.

use diffy::DiffOptions;
use serde_json::{Value, json};

use super::command;
use super::request::{Depth, Request};
use super::shown::Shown;
use super::summary;
use crate::message::ToolSpec;

/// Levels shown when nothing is said, and when everything is asked for.
const FLAT_DEPTH: u64 = 1;
const RECURSIVE_DEPTH: u64 = 32;

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
            single(call, results, tools, |found| (format!("listed `{place}`"), Shown::of(found).beginning()))
        }
        Request::Read { path } => single(read(path), results, tools, |found| {
            let shown = Shown::of(found);
            (format!("read {}", shown.measured(path)), shown.beginning())
        }),
        Request::Summarise { path } => single(read(path), results, tools, |found| {
            let shown = Shown::of(found);
            (format!("summarised {}", shown.measured(path)), summary::of_file(shown.text))
        }),
        Request::Search { text, directory } => {
            let place = directory.as_deref().unwrap_or(".");
            let arguments = json!({ "pattern": text, "literal": true, "path": place });
            let call = Call::new("palyra.fs.search", arguments, format!("search `{place}` for `{text}`"));
            single(call, results, tools, |found| {
                (format!("searched `{place}` for `{text}`"), Shown::of(found).beginning())
            })
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
        Request::Run { command } => run(command, results, tools),
        Request::Time => {
            let call = Call::new("palyra.time.now", json!({}), "look at the clock".to_owned());
            single(call, results, tools, |found| ("looked at the clock".to_owned(), found.trim().to_owned()))
        }
        Request::Help => Next::Done(Outcome::done("what I can do".to_owned(), super::answer::help())),
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

fn run(command: &str, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let aim = format!("run `{command}`");
    let Some(arguments) = command::arguments(command) else {
        return Next::Done(Outcome::failed(format!("could not {aim}: a quote in it is not closed")));
    };
    let call = Call::new("palyra.process.run", arguments, aim);
    match results {
        // A program that ran and failed says more than why it did not run.
        [result, ..] if result.failed && command::ran(result.content) => {
            let headline = format!("ran `{command}`, and it failed");
            let body = Shown::of(result.content).beginning();
            Next::Done(Outcome { body, ..Outcome::failed(headline) })
        }
        results => single(call, results, tools, |found| (format!("ran `{command}`"), Shown::of(found).beginning())),
    }
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
fn whole<'a>(path: &str, content: &'a str) -> Result<&'a str, Outcome> {
    let shown = Shown::of(content);
    if shown.is_part() {
        return Err(Outcome::failed(format!("cannot edit `{path}`: it is too large to be read in one piece")));
    }
    Ok(shown.text)
}

/// Text files end with a line end.
fn with_line_end(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}
