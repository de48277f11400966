//! What each request needs: the next tool call, or its outcome, worked out from the results so far.
//!
//! A step is a pure function of its request and of the results of its own calls. Edits read the file first and build a real
//! patch from what was read, so a file that somebody changes in between is refused by the patch tool and not overwritten.

use diffy::DiffOptions;
use serde_json::{Value, json};

use super::reading::{self, ALL_LEVELS, Purpose};
use super::request::{Depth, Request};
use super::shown::Shown;
use super::{command, refusal};
use crate::message::ToolSpec;

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

    pub(super) fn done(headline: String, body: String) -> Self {
        Self { verdict: Verdict::Done, headline, body }
    }
}

/// The next thing for a request, given the results of the calls already made for it.
pub(super) fn next(request: &Request, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    match request {
        Request::List { directory, depth } => {
            let place = directory.as_deref().unwrap_or(".");
            let levels = match depth {
                Depth::Flat => 1,
                Depth::Recursive => ALL_LEVELS,
            };
            single(place, Call::list(place, levels), results, tools, |found| {
                let (place, shown) = (place_name(place), Shown::of(found).beginning());
                if shown.is_empty() { (format!("{place} is empty"), shown) } else { (format!("listed {place}"), shown) }
            })
        }
        Request::Read { source } => reading::look(Purpose::Show, source, results, tools),
        Request::Summarise { source, sentences } => {
            reading::look(Purpose::Summarise(*sentences), source, results, tools)
        }
        Request::Count { unit, source } => reading::look(Purpose::Count(*unit), source, results, tools),
        Request::CountFiles { directory } => {
            reading::count_files(directory.as_deref().unwrap_or("."), results, tools)
        }
        Request::FindFile { name } => reading::find(name, results, tools),
        Request::Search { text, directory } => search(text, directory.as_deref().unwrap_or("."), results, tools),
        Request::Create { path, text } => {
            let arguments = json!({ "path": path, "content": with_line_end(text), "if_exists": "refuse" });
            let call = Call::new("palyra.fs.write", arguments, format!("create `{path}`"));
            single(path, call, results, tools, |found| (written(found), String::new()))
        }
        Request::Write { path, text } => {
            let arguments = json!({ "path": path, "content": with_line_end(text) });
            let call = Call::new("palyra.fs.write", arguments, format!("write `{path}`"));
            single(path, call, results, tools, |found| (written(found), String::new()))
        }
        Request::Copy { from, to } => copy(from, to, results, tools),
        Request::Move { from, to } => {
            let patch = format!("*** Begin Patch\n*** Update File: {from}\n*** Move to: {to}\n*** End Patch\n");
            let aim = format!("move `{from}` to `{to}`");
            if from == to {
                return Next::Done(Outcome::failed(format!("cannot move `{from}` to itself")));
            }
            if from.contains(['\n', '\r']) || to.contains(['\n', '\r']) {
                return Next::Done(Outcome::failed("cannot move a file whose name has a line break".to_owned()));
            }
            let call = Call::new("palyra.fs.apply_patch", json!({ "patch": patch }), aim);
            single(from, call, results, tools, |_| (format!("moved `{from}` to `{to}`"), String::new()))
        }
        Request::MakeDirectory { path } => Next::Done(Outcome::failed(format!(
            "cannot create the directory `{path}` by itself; `create {path}/FILE` creates it with a file in it, `run mkdir {path}` without one"
        ))),
        Request::Delete { spellings } => delete(spellings, results, tools),
        Request::Append { path, text } => append(path, text, results, tools),
        Request::Replace { old, new, path } => replace(path, old, new, results, tools),
        Request::Run { command } => run(command, results, tools),
        Request::Time => {
            let call = Call::new("palyra.time.now", json!({}), "look at the clock".to_owned());
            single(".", call, results, tools, |found| {
                (found.split(" (").next().unwrap_or_default().trim().to_owned(), String::new())
            })
        }
        Request::Help => Next::Done(Outcome::done(
            "the offline planner answers, which is not a language model; to connect one: palyra models discover\nIt understands".to_owned(),
            super::answer::ABILITIES.to_owned(),
        )),
        Request::Thanks => Next::Done(Outcome::done("you are welcome".to_owned(), String::new())),
        Request::Unknown(words) => Next::Done(Outcome::failed(format!(
            "did not understand `{words}`, which may take a language model: palyra models discover"
        ))),
    }
}

/// A call before it is made.
pub(super) struct Call {
    tool: &'static str,
    arguments: Value,
    aim: String,
}

impl Call {
    pub(super) fn new(tool: &'static str, arguments: Value, aim: String) -> Self {
        Self { tool, arguments, aim }
    }

    pub(super) fn read(path: &str) -> Self {
        Self::new("palyra.fs.read", json!({ "path": path }), format!("read `{path}`"))
    }

    pub(super) fn list(path: &str, levels: u64) -> Self {
        Self::new("palyra.fs.list", json!({ "path": path, "depth": levels }), format!("list {}", place_name(path)))
    }

    /// The call, or why it cannot be made here.
    pub(super) fn or_unavailable(self, tools: &[ToolSpec]) -> Next {
        if tools.iter().any(|tool| tool.name == self.tool) {
            return Next::Call { tool: self.tool, arguments: self.arguments, aim: self.aim };
        }
        let headline = format!("cannot {}: the tool `{}` is not available here", self.aim, self.tool);
        Next::Done(Outcome::failed(headline))
    }
}

/// A directory for people.
pub(super) fn place_name(path: &str) -> String {
    if path == "." { "the workspace".to_owned() } else { format!("`{path}`") }
}

fn search(text: &str, place: &str, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let name = place_name(place);
    let arguments = json!({ "pattern": text, "literal": true, "path": place });
    let call = Call::new("palyra.fs.search", arguments, format!("search {name} for `{text}`"));
    single(place, call, results, tools, |found| match found.trim().strip_prefix("[no match") {
        Some(where_not) => (format!("no match for `{text}`{}", where_not.trim_end_matches(']')), String::new()),
        None => (format!("found `{text}` in {name}"), Shown::of(found).beginning()),
    })
}

/// What a write did, without the digest: `created `a.txt` (6 bytes)`.
fn written(found: &str) -> String {
    let line = found.lines().next().unwrap_or_default();
    line.split_once(", sha256:").map_or_else(|| line.to_owned(), |(told, _)| format!("{told})"))
}

fn run(command: &str, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let aim = format!("run `{command}`");
    let Some(arguments) = command::arguments(command) else {
        return Next::Done(Outcome::failed(format!("could not {aim}: a quote in it is not closed")));
    };
    let call = Call::new("palyra.process.run", arguments, aim);
    match results {
        // A program that ran and failed says more than why it did not run.
        [result, ..] if command::ran(result.content) => {
            let command::Ran { how, printed } = command::Ran::of(result.content);
            let body = Shown::of(&printed).beginning();
            Next::Done(if result.failed {
                let with = if how.starts_with("ended by") { "was" } else { "failed with" };
                Outcome { body, ..Outcome::failed(format!("`{command}` {with} {how}")) }
            } else {
                Outcome::done(format!("ran `{command}`"), body)
            })
        }
        results => single("", call, results, tools, |found| (format!("ran `{command}`"), Shown::of(found).beginning())),
    }
}

/// A step of one call on a path.
fn single(
    path: &str,
    call: Call,
    results: &[Finished<'_>],
    tools: &[ToolSpec],
    report: impl FnOnce(&str) -> (String, String),
) -> Next {
    match results {
        [] => call.or_unavailable(tools),
        [result, ..] if result.failed => Next::Done(refused(&call.aim, path, result)),
        [result, ..] => {
            let (headline, body) = report(result.content);
            Next::Done(Outcome::done(headline, body))
        }
    }
}

fn refused(aim: &str, path: &str, result: &Finished<'_>) -> Outcome {
    Outcome::failed(format!("could not {aim}: {}", refusal::reason(path, result)))
}

/// Deletes the first of the spellings that exists.
fn delete(spellings: &[String], results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let last = spellings.len().saturating_sub(1);
    for (position, path) in spellings.iter().enumerate() {
        if path.contains(['\n', '\r']) {
            return Next::Done(Outcome::failed("cannot delete a file whose name has a line break".to_owned()));
        }
        let results = results.get(position..).unwrap_or_default();
        if results.first().is_some_and(refusal::is_not_found) && position < last {
            continue;
        }
        let patch = format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n");
        let call = Call::new("palyra.fs.apply_patch", json!({ "patch": patch }), format!("delete `{path}`"));
        return single(path, call, results, tools, |_| (format!("deleted `{path}`"), String::new()));
    }
    Next::Done(Outcome::failed("no file was named".to_owned()))
}

/// Copies a text file; one that exists is left as it is.
fn copy(from: &str, to: &str, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let aim = format!("copy `{from}` to `{to}`");
    match results {
        [] => Call::read(from).or_unavailable(tools),
        [before] if before.failed => Next::Done(refused(&aim, from, before)),
        [before] => match whole(from, before.content) {
            Err(outcome) => Next::Done(outcome),
            Ok(text) => {
                let arguments = json!({ "path": to, "content": text, "if_exists": "refuse" });
                Call::new("palyra.fs.write", arguments, aim).or_unavailable(tools)
            }
        },
        [_, result, ..] if result.failed => Next::Done(refused(&aim, to, result)),
        [..] => Next::Done(Outcome::done(format!("copied `{from}` to `{to}`"), String::new())),
    }
}

fn append(path: &str, text: &str, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let aim = format!("append to `{path}`");
    match results {
        [] => Call::read(path).or_unavailable(tools),
        [before] if before.failed => Next::Done(refused(&aim, path, before)),
        [before] => match whole(path, before.content) {
            Err(outcome) => Next::Done(outcome),
            Ok(old) => {
                let joint = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
                patch(path, old, &format!("{old}{joint}{}", with_line_end(text)), aim).or_unavailable(tools)
            }
        },
        [_, result, ..] if result.failed => Next::Done(refused(&aim, path, result)),
        [..] => Next::Done(Outcome::done(format!("appended to `{path}`"), String::new())),
    }
}

fn replace(path: &str, old: &str, new: &str, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let aim = format!("replace `{old}` with `{new}` in `{path}`");
    match results {
        [] => Call::read(path).or_unavailable(tools),
        [before] if before.failed => Next::Done(refused(&aim, path, before)),
        [before] => match whole(path, before.content) {
            Err(outcome) => Next::Done(outcome),
            Ok(text) if !text.contains(old) => {
                Next::Done(Outcome::failed(format!("could not {aim}: `{old}` does not occur there")))
            }
            Ok(_) if old == new => Next::Done(Outcome::done(format!("left `{path}` as it is"), String::new())),
            Ok(text) => patch(path, text, &text.replace(old, new), aim).or_unavailable(tools),
        },
        [_, result, ..] if result.failed => Next::Done(refused(&aim, path, result)),
        [before, ..] => {
            let count = before.content.matches(old).count();
            let places = if count == 1 { "place" } else { "places" };
            let headline = format!("replaced `{old}` with `{new}` in `{path}` ({count} {places})");
            Next::Done(Outcome::done(headline, String::new()))
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
        return Err(Outcome::failed(format!("`{path}` is too large to be read in one piece, so it was left as it is")));
    }
    Ok(shown.text)
}

/// Text files end with a line end.
fn with_line_end(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}
