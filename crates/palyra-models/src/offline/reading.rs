//! Steps that look at files: reading, summarising, counting, finding.

use serde_json::json;

use super::refusal;
use super::request::{Source, Unit};
use super::shown::Shown;
use super::steps::{Call, Finished, Next, Outcome, place_name};
use super::summary;
use crate::message::ToolSpec;

/// Levels that are listed when all of them are wanted.
pub(super) const ALL_LEVELS: u64 = 32;

/// What a text is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Show,
    Summarise(Option<usize>),
    Count(Unit),
}

/// Reads a source and reports on it.
pub(super) fn look(purpose: Purpose, source: &Source, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    match source {
        Source::Attached(attachment) => Next::Done(report(purpose, &attachment.name, &Shown::of(&attachment.text))),
        Source::File(spellings) => file(purpose, spellings, results, tools),
    }
}

fn file(purpose: Purpose, spellings: &[String], results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let last = spellings.len().saturating_sub(1);
    for (position, path) in spellings.iter().enumerate() {
        let Some(result) = results.get(position) else { return Call::read(path).or_unavailable(tools) };
        match result {
            result if refusal::is_not_found(result) && position < last => {}
            result if refusal::is_directory(result) && purpose == Purpose::Show => {
                return listed(path, results.get(position + 1), tools);
            }
            result if result.failed => {
                let reason = refusal::reason(path, result);
                return Next::Done(Outcome::failed(format!("could not read `{path}`: {reason}")));
            }
            result => return Next::Done(report(purpose, &format!("`{path}`"), &Shown::of(result.content))),
        }
    }
    Next::Done(Outcome::failed("no file was named".to_owned()))
}

/// A directory where a file was asked for is listed.
fn listed(path: &str, result: Option<&Finished<'_>>, tools: &[ToolSpec]) -> Next {
    match result {
        None => Call::list(path, 1).or_unavailable(tools),
        Some(result) if result.failed => {
            Next::Done(Outcome::failed(format!("could not list `{path}`: {}", refusal::reason(path, result))))
        }
        Some(result) => {
            let shown = Shown::of(result.content);
            Next::Done(Outcome::done(format!("`{path}` is a directory"), shown.beginning()))
        }
    }
}

fn report(purpose: Purpose, name: &str, shown: &Shown<'_>) -> Outcome {
    match purpose {
        Purpose::Show => Outcome::done(format!("read {}", shown.measured(name)), shown.beginning()),
        Purpose::Summarise(sentences) => {
            let headline = format!("summary of {}, made of its own sentences", shown.measured(name));
            Outcome::done(headline, summary::of_text(shown.text, sentences))
        }
        Purpose::Count(_) if shown.is_part() => Outcome::failed(format!(
            "cannot count {name}: it is too large to be read in one piece; to count it: palyra run \"run wc {}\"",
            name.trim_matches('`')
        )),
        Purpose::Count(unit) => {
            let (count, word) = match unit {
                Unit::Lines => (shown.text.lines().count(), "line"),
                Unit::Words => (shown.text.split_whitespace().count(), "word"),
                Unit::Characters => (shown.text.chars().count(), "character"),
            };
            Outcome::done(format!("{name} has {}", summary::plural(count, word)), String::new())
        }
    }
}

/// Counts the files below a directory.
pub(super) fn count_files(directory: &str, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    let place = place_name(directory);
    match results {
        [] => Call::list(directory, ALL_LEVELS).or_unavailable(tools),
        [result, ..] if result.failed => {
            Next::Done(Outcome::failed(format!("could not list {place}: {}", refusal::reason(directory, result))))
        }
        [result, ..] => {
            let shown = Shown::of(result.content);
            let (directories, files): (Vec<&str>, Vec<&str>) =
                entries(shown.text).partition(|entry| entry.ends_with('/'));
            let more = if shown.is_part() { "more than " } else { "" };
            let counted = format!(
                "{more}{} and {} in {place}",
                summary::plural(files.len(), "file"),
                directories_in_words(directories.len())
            );
            Next::Done(Outcome::done(format!("{counted}; hidden and ignored ones are not counted"), String::new()))
        }
    }
}

fn directories_in_words(count: usize) -> String {
    if count == 1 { "1 directory".to_owned() } else { format!("{count} directories") }
}

/// Finds files by name.
pub(super) fn find(name: &str, results: &[Finished<'_>], tools: &[ToolSpec]) -> Next {
    match results {
        [] => {
            let arguments = json!({ "path": ".", "depth": ALL_LEVELS });
            Call::new("palyra.fs.list", arguments, format!("look for `{name}`")).or_unavailable(tools)
        }
        [result, ..] if result.failed => {
            Next::Done(Outcome::failed(format!("could not look for `{name}`: {}", refusal::reason(".", result))))
        }
        [result, ..] => {
            let shown = Shown::of(result.content);
            let found: Vec<&str> = entries(shown.text).filter(|entry| is_named(entry, name)).collect();
            Next::Done(match found.as_slice() {
                [] if shown.is_part() => Outcome::failed(format!(
                    "`{name}` is not among the first files of the workspace, and there are more than I can list"
                )),
                [] => Outcome::done(
                    format!("there is no file named `{name}` here, apart from hidden and ignored ones"),
                    String::new(),
                ),
                found => Outcome::done(format!("found `{name}`"), found.join("\n")),
            })
        }
    }
}

/// The paths of a listing; those of directories end with a slash.
fn entries(listing: &str) -> impl Iterator<Item = &str> {
    listing.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('[')).map(|line| {
        let size = line.rsplit_once("  ").filter(|(_, size)| size.ends_with(" bytes") || size.ends_with(" byte"));
        size.map_or(line, |(path, _)| path)
    })
}

fn is_named(entry: &str, name: &str) -> bool {
    let entry = entry.trim_end_matches('/');
    let name = name.trim_start_matches("./");
    let last = entry.rsplit('/').next().unwrap_or(entry);
    let whole = if name.contains('/') { entry } else { last };
    match name.split_once('*') {
        Some((before, after)) => {
            whole.len() >= before.len() + after.len() && whole.starts_with(before) && whole.ends_with(after)
        }
        None => whole == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_a_listing() {
        let listing = "a/\na/notes.md  2 bytes\nnotes.md  13 bytes\nodd  name.txt  1 bytes\n";
        let found = |name: &str| entries(listing).filter(|entry| is_named(entry, name)).collect::<Vec<_>>();
        assert_eq!(found("notes.md"), ["a/notes.md", "notes.md"]);
        assert_eq!(found("./a/notes.md"), ["a/notes.md"]);
        assert_eq!(found("*.md"), ["a/notes.md", "notes.md"]);
        assert_eq!(found("odd  name.txt"), ["odd  name.txt"]);
        assert_eq!(found("a"), ["a/"]);
        assert!(found("otes.md").is_empty());
    }
}
